"""The spec: what a worker must know about the operators, in a file named by its content."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from freshet.log import Damaged
from freshet.model import Node, Operator
from freshet.model.operators import fields_of, operator_of
from freshet.spark.files import write_once


@dataclass(frozen=True, slots=True)
class Spec:
    """Operators by number, where each writes to, the outputs that several paths must agree on, and what joins read.

    >>> from freshet.model import Filter
    >>> spec = Spec((Filter("q.filter_1", "v > 1"),), ("q",), {})
    >>> Spec.parse(spec.text()) == spec
    True
    """

    operators: tuple[Operator, ...]
    writes: tuple[str, ...]
    outputs: Mapping[str, pa.Schema]
    """Columns of a stream to which several paths with different types write."""
    reads: Mapping[int, pa.Schema] = field(default_factory=dict)
    """What comes into the nodes of paths with folds, which may have to run when nothing comes."""
    others: Mapping[int, pa.Schema] = field(default_factory=dict)
    """For the node of one side of a join, the columns that come in on the other side."""
    rows_out: int | None = None
    """Most rows that a unit of a query may give out for each row that it reads."""

    @classmethod
    def of(
        cls,
        nodes: Sequence[Node],
        outputs: Mapping[str, pa.Schema],
        reads: Mapping[int, pa.Schema] | None = None,
        others: Mapping[int, pa.Schema] | None = None,
        rows_out: int | None = None,
    ) -> Spec:
        """The spec of a network's nodes."""
        operators = tuple(node.operator for node in nodes)
        writes = tuple(node.writes for node in nodes)
        return cls(operators, writes, dict(outputs), dict(reads or {}), dict(others or {}), rows_out)

    def chain(self, numbers: Sequence[int]) -> tuple[Operator, ...]:
        """The operators of a chain."""
        return tuple(self.operators[number] for number in numbers)

    def text(self) -> str:
        """As JSON."""
        operators = [fields_of(operator) for operator in self.operators]
        schemas = {
            kind: {str(name): _written(schema) for name, schema in sorted(known.items())}
            for kind, known in (("outputs", self.outputs), ("reads", self.reads), ("others", self.others))
        }
        return json.dumps({"operators": operators, "writes": self.writes, **schemas, "rows_out": self.rows_out})

    @classmethod
    def parse(cls, text: str) -> Spec:
        """From JSON."""
        fields = json.loads(text)
        outputs = {name: _read(schema) for name, schema in fields["outputs"].items()}
        reads, others = (
            {int(number): _read(schema) for number, schema in fields[kind].items()} for kind in ("reads", "others")
        )
        operators = tuple(map(operator_of, fields["operators"]))
        return cls(operators, tuple(fields["writes"]), outputs, reads, others, fields["rows_out"])

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
    return Spec.parse(text)


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _written(schema: pa.Schema) -> str:
    # Arrow's own form and not DDL: that has no text for no column, for odd names in structs, for some types.
    return base64.b64encode(schema.serialize()).decode()


def _read(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
