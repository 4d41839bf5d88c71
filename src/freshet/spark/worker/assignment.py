"""Assignments: what the driver tells the tasks of one job, in a job-local property."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Final

from freshet.log.segments.sums import Checks
from freshet.model import Chain, Input, Segment, State, Train
from freshet.spark.driver.files import forget, write_once

PROPERTY: Final = "freshet.assignment"
# A property is sent with every task, in memory that Spark sizes for short texts.
_LONGEST_PROPERTY: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Assignment:
    """Chains of a unit that one job runs, split over ``parts`` tasks.

    >>> chain = Chain((0, 1), (Train("s", 0, 10),), ("q",))
    >>> assignment = Assignment(Path("/state"), "u1", "5bec", 2, (chain, Chain((2,), (0,))))
    >>> Assignment.parse(assignment.text()) == assignment
    True
    >>> assignment.part(chain.trains[0], 1)
    Train(stream='s', first=5, end=10, segments=())
    """

    state: Path
    unit: str
    spec: str
    parts: int
    chains: tuple[Chain, ...]
    """Their inputs are trains, and places in this list."""
    states: tuple[State, ...] = ()
    """States of the folds in its chains."""
    tables: tuple[Train, ...] = ()
    """Versions of the tables that its chains join with."""
    parted: tuple[str, ...] = ()
    """Folds that merge tuples in every task, each its part of them, and close no window."""
    checks: Checks = Checks.ONCE
    """When the checksums of trains are looked at; never: nor are any written."""

    def trains(self) -> Iterator[Train]:
        """All that its tasks read."""
        yield from (train for chain in self.chains for train in chain.trains)
        yield from (each for state in self.states for each in state.ranges)
        yield from self.tables

    @property
    def segments(self) -> Path:
        """Folder of the segment files."""
        return self.state / "segments"

    @property
    def specs(self) -> Path:
        """Folder of the specs."""
        return self.state / "specs"

    def report_file(self, name: str) -> Path:
        """Where a task may put a long report."""
        return self.specs / f"{name}.report"

    def part(self, train: Train, number: int) -> Train:
        """A task's share of a train: parts differ by one tuple at most, and follow each other in order."""
        first = train.first + train.rows * number // self.parts
        end = train.first + train.rows * (number + 1) // self.parts
        segments = tuple(piece for piece in train.segments if piece.first < end and piece.end > first)
        return Train(train.stream, first, end, segments)

    def text(self) -> str:
        """As JSON; what many chains read is written once."""
        inputs: dict[Hashable, tuple[int, list[object]]] = {}
        chains = []
        for chain in self.chains:
            key = tuple([input_key(each) for each in chain.inputs])
            if key not in inputs:
                inputs[key] = (
                    len(inputs),
                    [each if isinstance(each, int) else train_fields(each) for each in chain.inputs],
                )
            chains.append((chain.nodes, inputs[key][0], chain.writes))
        states = [
            [each.fold, [train_fields(one) for one in each.ranges], each.before, each.after] for each in self.states
        ]
        tables = [train_fields(each) for each in self.tables]
        read = [written for _, written in inputs.values()]
        fields = [str(self.state), self.unit, self.spec, self.parts, read, chains, states, tables]
        return json.dumps([*fields, self.parted, self.checks], separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Assignment:
        """From JSON."""
        state, unit, spec, parts, inputs, chains, states, tables, parted, checks = json.loads(text)
        read = [tuple(each if isinstance(each, int) else train_of(each) for each in some) for some in inputs]
        return cls(
            Path(state),
            unit,
            spec,
            parts,
            tuple([Chain(tuple(nodes), read[number], tuple(writes)) for nodes, number, writes in chains]),
            tuple([State(fold, _ranges(some), tuple(first), tuple(last)) for fold, some, first, last in states]),
            _ranges(tables),
            tuple(parted),
            Checks(checks),
        )

    def property_text(self) -> str:
        """What to set as the property: the text itself, or the name of a file that holds it."""
        return property_text(self.text(), self.specs)

    def forget_reports(self) -> None:
        """Removes the long reports of tasks whose job failed; those of other jobs of the unit have been read."""
        forget(self.specs, f"{self.unit}-*.report")


def read_property(text: str | None) -> Assignment:
    """The assignment of the running job, in a task."""
    if text is None:
        raise RuntimeError(f"the job has no property {PROPERTY}")
    return Assignment.parse(told(text))


def property_text(text: str, folder: Path) -> str:
    """What to set as a property to tell tasks a JSON list: the list itself, or the name of a file that holds it."""
    if len(text) <= _LONGEST_PROPERTY:
        return text
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.assignment"
    write_once(path, text)
    return str(path)


def told(text: str) -> str:
    """The list that a property tells."""
    return text if text.startswith("[") else Path(text).read_text(encoding="utf-8")


def forget_property(text: str) -> None:
    """Removes the file, where the property named one."""
    if not text.startswith("["):
        Path(text).unlink(missing_ok=True)


def train_fields(train: Train) -> list[object]:
    """A train for JSON."""
    # Only what overlaps: a worker opens every segment that it is told of.
    return [train.stream, train.first, train.end, [astuple(segment) for segment in train.segments]]


def input_key(each: Input) -> Hashable:
    """What tells inputs of the chains of one unit apart, without a look at their segments."""
    return each if isinstance(each, int) else (each.stream, each.first, each.end)


def _ranges(trains: list[list[Any]]) -> tuple[Train, ...]:
    return tuple(map(train_of, trains))


def train_of(train: list[Any]) -> Train:
    """A train from JSON."""
    stream, first, end, segments = train
    return Train(stream, first, end, tuple(Segment(*segment) for segment in segments))
