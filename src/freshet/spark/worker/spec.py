"""The spec: what a worker must know about the operators, in a file named by its content."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from freshet.log import Damaged
from freshet.model import Operator
from freshet.model.operators.codec import fields_of, operator_of
from freshet.spark.driver.files import write_once
from freshet.spark.worker.functions import Packed, unpack_all


@dataclass(frozen=True, slots=True)
class Spec:
    """Operators by number, and what comes in at each of their ports.

    >>> from freshet.model import Filter
    >>> spec = Spec((Filter("q.filter_1", "v > 1"),), ((pa.schema([("v", pa.int32())]),),))
    >>> Spec.parse(spec.text()) == spec
    True
    """

    operators: tuple[Operator, ...] = ()
    inputs: tuple[tuple[pa.Schema, ...], ...] = ()
    """Columns that come in at each port of each operator, the arrival apart."""
    rows_out: int | None = None
    """Maximum number of rows that a unit of a query may give out for each row that it reads."""
    functions: tuple[Packed, ...] = ()
    """The user's own functions that the operators call."""
    kept_bytes: int = 2**30
    """Maximum memory in which a worker keeps what it has made of states."""

    def chain(self, numbers: Sequence[int]) -> tuple[Operator, ...]:
        """The operators of a chain."""
        return tuple(self.operators[number] for number in numbers)

    def text(self) -> str:
        """As JSON; columns that many operators read are written once."""
        known: dict[pa.Schema, int] = {}
        inputs = [[known.setdefault(schema, len(known)) for schema in each] for each in self.inputs]
        operators = [fields_of(operator) for operator in self.operators]
        fields = {"operators": operators, "inputs": inputs, "schemas": list(map(_written, known))}
        limits = {"rows_out": self.rows_out, "kept_bytes": self.kept_bytes}
        return json.dumps({**fields, **limits, "functions": self.functions})

    @classmethod
    def parse(cls, text: str) -> Spec:
        """From JSON."""
        fields = json.loads(text)
        schemas = list(map(_read, fields["schemas"]))
        inputs = tuple(tuple(schemas[place] for place in each) for each in fields["inputs"])
        functions = tuple(Packed(*each) for each in fields["functions"])
        operators = tuple(map(operator_of, fields["operators"]))
        return cls(operators, inputs, fields["rows_out"], functions, fields["kept_bytes"])

    def store(self, folder: Path) -> str:
        """Writes the spec to a folder and returns its name there, a hash of its content."""
        text = self.text()
        name = _name(text)
        write_once(folder / f"{name}.json", text)
        return name


@lru_cache(maxsize=4)
def load_spec(folder: Path, name: str) -> Spec:
    """Reads a spec; a worker needs the newest, and for a moment the one before."""
    path = folder / f"{name}.json"
    text = path.read_text(encoding="utf-8", errors="replace")
    if _name(text) != name:
        raise Damaged(f"{path} is damaged; stop the run and start it again, which writes it anew")
    spec = Spec.parse(text)
    unpack_all(spec.functions)
    return spec


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _written(schema: pa.Schema) -> str:
    # Arrow's own form: DDL cannot express an empty schema, odd names in structs, or some types.
    return base64.b64encode(schema.serialize()).decode()


def _read(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
