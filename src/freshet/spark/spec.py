"""The spec: what a worker must know about the operators, in a file named by its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from freshet.model import Filter, Node, Project, parse_schema, schema_text
from freshet.spark.files import write_once


@dataclass(frozen=True, slots=True)
class Spec:
    """Operators by number, where each writes to, and the outputs that several paths must agree on.

    >>> from freshet.model import Filter
    >>> spec = Spec((Filter("q.filter_1", "v > 1"),), ("q",), {})
    >>> Spec.parse(spec.text()) == spec
    True
    """

    operators: tuple[Filter | Project, ...]
    writes: tuple[str, ...]
    outputs: Mapping[str, pa.Schema]
    """Columns of a stream to which several paths with different types write."""

    @classmethod
    def of(cls, nodes: Sequence[Node], outputs: Mapping[str, pa.Schema]) -> Spec:
        """The spec of a network's nodes."""
        operators = tuple(node.operator for node in nodes)
        return cls(operators, tuple(node.writes for node in nodes), dict(outputs))

    def chain(self, numbers: Sequence[int]) -> tuple[Filter | Project, ...]:
        """The operators of a chain."""
        return tuple(self.operators[number] for number in numbers)

    def text(self) -> str:
        """As JSON."""
        operators = [
            [operator.name, operator.predicate if isinstance(operator, Filter) else operator.columns]
            for operator in self.operators
        ]
        outputs = {name: schema_text(schema) for name, schema in sorted(self.outputs.items())}
        return json.dumps({"operators": operators, "writes": self.writes, "outputs": outputs})

    @classmethod
    def parse(cls, text: str) -> Spec:
        """From JSON."""
        fields = json.loads(text)
        outputs = {name: parse_schema(ddl) for name, ddl in fields["outputs"].items()}
        operators = tuple(_operator(name, body) for name, body in fields["operators"])
        return cls(operators, tuple(fields["writes"]), outputs)

    def store(self, folder: Path) -> str:
        """Writes the spec to a folder and returns its name there, a hash of its content."""
        text = self.text()
        name = hashlib.sha256(text.encode()).hexdigest()[:24]
        write_once(folder / f"{name}.json", text)
        return name


@lru_cache(maxsize=4)
def load_spec(folder: Path, name: str) -> Spec:
    """Reads a spec; a worker needs the newest, and for a moment the one before."""
    return Spec.parse((folder / f"{name}.json").read_text(encoding="utf-8"))


def _operator(name: str, body: Any) -> Filter | Project:
    if isinstance(body, str):
        return Filter(name, body)
    return Project(name, tuple((column, expression) for column, expression in body))
