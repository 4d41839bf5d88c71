"""Assignments: what the driver tells the tasks of one job, in a job-local property."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from freshet.log.segments.sums import Checks
from freshet.model import Chain, Input, Keep, Segment, State, Train
from freshet.spark.driver.files import forget, write_once

if TYPE_CHECKING:
    from pyspark import SparkContext

PROPERTY: Final = "freshet.assignment"
# A property is sent with every task, in memory that Spark sizes for short texts.
_LONGEST_PROPERTY: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Assignment:
    """Chains of a unit that one job runs, split over ``parts`` tasks. Each runs all chains over a part of the tuples,
    or some of the chains over all tuples if they are ``dealt``.

    >>> chain = Chain((0, 1), (Train("s", 0, 10),), ("q",))
    >>> assignment = Assignment(Path("/state"), "u1", "5bec", 2, (chain, Chain((2,), (0,))))
    >>> Assignment.parse(assignment.text()) == assignment
    True
    >>> assignment.part(chain.trains[0], 1)
    Train(stream='s', first=5, end=10, segments=(), keep=None)
    """

    state: Path
    unit: str
    spec: str
    parts: int
    chains: tuple[Chain, ...]
    """Their inputs are trains, and places in this list."""
    states: tuple[State, ...] = ()
    """What the folds of its chains remember."""
    tables: tuple[Train, ...] = ()
    """Versions of the tables that its chains join with."""
    parted: tuple[str, ...] = ()
    """Folds that merge tuples in every task, each its own part of them, and close no window."""
    checks: Checks = Checks.ONCE
    """When tasks check the checksums of their trains; with ``NEVER`` they do not write any, either."""
    synced_from: int = 0
    """Files of at least this number of bytes are synced by the task that writes them, smaller ones by the driver."""
    dealt: bool = False
    """Whether each task runs some of the chains over all tuples; none of them has a state."""

    def trains(self) -> Iterator[Train]:
        """Everything that its tasks read."""
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

    def part(self, train: Train, number: int) -> Train:
        """A task's share of a train: shares differ by at most one tuple, and follow each other in order."""
        first = train.first + train.rows * number // self.parts
        end = train.first + train.rows * (number + 1) // self.parts
        segments = tuple(piece for piece in train.segments if piece.first < end and piece.end > first)
        return Train(train.stream, first, end, segments, train.keep)

    def brief(self) -> Assignment:
        """The same for a worker that has kept the states: of each range only the last segment.

        >>> pieces = tuple(Segment("q.state", first, 5, 0, 0, 0, f"{first}.arrows", 0, 9) for first in (0, 5))
        >>> state = State("q", (Train("q.state", 0, 10, pieces),), (None,), (None,))
        >>> [left] = Assignment(Path("/state"), "u1", "5bec", 1, (), (state,)).brief().states[0].ranges
        >>> [segment.file for segment in left.segments], is_whole(left), is_whole(state.ranges[0])
        (['5.arrows'], False, True)
        """
        return replace(self, states=tuple(replace(each, ranges=_lasts(each.ranges)) for each in self.states))

    def text(self) -> str:
        """As JSON; inputs that many chains read are written once."""
        places: dict[Hashable, int] = {}
        inputs, chains = [], []
        for chain in self.chains:
            key = tuple([input_key(each) for each in chain.inputs])
            if key not in places:
                places[key] = len(places)
                inputs.append([each if isinstance(each, int) else train_fields(each) for each in chain.inputs])
            chains.append((chain.nodes, places[key], chain.writes, chain.arrival))
        states = [
            (each.fold, _fields(each.ranges), each.before, each.after, each.rewrites, each.parts, each.becomes)
            for each in self.states
        ]
        fields = [str(self.state), self.unit, self.spec, self.parts, inputs, chains, states, _fields(self.tables)]
        return json.dumps([*fields, self.parted, self.checks, self.synced_from, self.dealt], separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> Assignment:
        """From JSON."""
        return cls.of(json.loads(text))

    @classmethod
    def of(cls, fields: Sequence[Any]) -> Assignment:
        """From the list that :meth:`text` writes."""
        state, unit, spec, parts, inputs, chains, states, tables, parted, checks, synced_from, dealt = fields
        read = [tuple(each if isinstance(each, int) else train_of(each) for each in some) for some in inputs]
        bound = tuple([Chain(tuple(nodes), read[number], tuple(writes), at) for nodes, number, writes, at in chains])
        kept, versions = tuple([_state(*each) for each in states]), _ranges(tables)
        how = tuple(parted), Checks(checks), synced_from, dealt
        return cls(Path(state), unit, spec, parts, bound, kept, versions, *how)


@contextmanager
def telling(context: SparkContext, name: str, text: str, folder: Path, reports: str) -> Iterator[None]:
    """Tells the tasks of the job that runs inside a JSON list, in a property of this name: the list itself, or where it
    is long the path of a file in a folder. If the job fails, the long reports of its tasks, whose names begin with
    ``reports``, are removed from the folder."""
    file = None
    if len(text) > _LONGEST_PROPERTY:
        file = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.assignment"
        write_once(file, text)
    context.setLocalProperty(name, text if file is None else str(file))
    try:
        yield
    except BaseException:
        forget(folder, f"{reports}-*.report")
        raise
    finally:
        if file is not None:
            file.unlink(missing_ok=True)


def told(text: str) -> str:
    """The list that a property tells."""
    return text if text.startswith("[") else Path(text).read_text(encoding="utf-8")


def is_whole(train: Train) -> bool:
    """Whether a train says where all its tuples are."""
    return not train.rows or (bool(train.segments) and train.segments[0].first <= train.first)


def _lasts(ranges: tuple[Train, ...]) -> tuple[Train, ...]:
    return tuple(replace(each, segments=each.segments[-1:]) for each in ranges)


def train_fields(train: Train) -> list[object]:
    """A train for JSON."""
    fields = [train.stream, train.first, train.end, [astuple(segment) for segment in train.segments]]
    return fields if train.keep is None else [*fields, train.keep.stored()]


def input_key(each: Input) -> Hashable:
    """Tells the inputs of the chains of one unit apart without looking at their segments."""
    return each if isinstance(each, int) else (each.stream, each.first, each.end, each.keep)


def _fields(trains: tuple[Train, ...]) -> list[list[object]]:
    return list(map(train_fields, trains))


def _ranges(trains: list[list[Any]]) -> tuple[Train, ...]:
    return tuple(map(train_of, trains))


def _state(fold: str, ranges: list[Any], before: Any, after: Any, rewrites: Any, *parts: Any) -> State:
    return State(fold, _ranges(ranges), tuple(before), tuple(after), tuple(rewrites), *parts)


def train_of(train: list[Any]) -> Train:
    """A train from JSON."""
    stream, first, end, segments, *keep = train
    kept = Keep.restored(keep[0]) if keep else None
    return Train(stream, first, end, tuple(Segment(*segment) for segment in segments), kept)
