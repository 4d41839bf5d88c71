"""What the tests of execution need: trains on disk, queries, and an executor that one can wait for."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import SparkSession

from freshet.engine import RealClock
from freshet.log.segments.segment import SegmentWriter, read_train
from freshet.model import (
    ARRIVAL,
    Chain,
    Filter,
    Input,
    Network,
    Project,
    Query,
    QueryGraph,
    Segment,
    SegmentFile,
    Train,
    Union,
    Unit,
    UnitResult,
    UserError,
)
from freshet.spark.driver.executor import SparkExecutor
from freshet.spark.driver.residents.pool import Residents

_numbers = itertools.count()


def query(name: str, stream: str, *steps: str | Sequence[tuple[str, str]]) -> Query:
    """A query of one path: a text is a filter, pairs of name and expression are a projection."""
    return union(name, (stream, steps))


def union(name: str, *paths: tuple[str, Sequence[str | Sequence[tuple[str, str]]]]) -> Query:
    """A query of several paths."""
    operators: dict[str, Any] = {}
    inputs: dict[str, tuple[str, ...]] = {}
    ends = []
    for number, (stream, steps) in enumerate(paths):
        before = stream
        for position, step in enumerate(steps):
            label = f"{name}.{number}_{position}"
            kind = Filter(label, step) if isinstance(step, str) else Project(label, tuple(map(tuple, step)))  # type: ignore[arg-type]
            operators[label], inputs[label] = kind, (before,)
            before = label
        ends.append(before)
    if len(ends) == 1:
        return Query(name, "", QueryGraph(operators, inputs, ends[0]))
    root = f"{name}.union"
    return Query(name, "", QueryGraph({**operators, root: Union(root)}, {**inputs, root: tuple(ends)}, root))


def with_arrivals(table: pa.Table, first: int = 1_000_000) -> pa.Table:
    """The rows with arrivals one millisecond apart."""
    arrivals = pa.array(range(first, first + 1000 * table.num_rows, 1000), pa.int64())
    return table.append_column(ARRIVAL, arrivals)


def write_train(state: Path, stream: str, *tables: pa.Table) -> Train:
    """Tables (with arrivals) as consecutive segments, and the train over all of them."""
    segments: list[Segment] = []
    end = 0
    for table in tables:
        number = next(_numbers)
        writer = SegmentWriter(state / "segments", f"train-{number}")
        writer.add(stream, table)
        segments += as_segments(writer.finish(), stream, end)
        end += table.num_rows
    return Train(stream, 0, end, tuple(segments))


def as_segments(file: SegmentFile, stream: str, first: int = 0) -> list[Segment]:
    """What a log would make of the members of one stream in a file."""
    segments = []
    for name, rows, position, length, arrival, last in file.members:
        if name == stream:
            segments.append(Segment(name, first, rows, 0, arrival, last, file.name, position, length))
            first += rows
    return segments


def output_train(result: UnitResult, stream: str) -> Train:
    """What a unit wrote to a stream, as the train of a next unit."""
    segments: list[Segment] = []
    for file in result.files:
        segments += as_segments(file, stream, segments[-1].end if segments else 0)
    return Train(stream, 0, segments[-1].end if segments else 0, tuple(segments))


class Harness:
    """An executor over a state folder, with the queries that were added to it."""

    def __init__(
        self, session: SparkSession, state: Path, slots: int = 2, vectorise: bool = True, **options: Any
    ) -> None:
        self.state = state
        self.network = Network()
        self.schemas: dict[str, pa.Schema] = {}
        self._clock = RealClock()
        (state / "segments").mkdir(parents=True, exist_ok=True)
        self.executor = SparkExecutor(session, state, slots=slots, clock=self._clock, vectorise=vectorise, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.executor.close()

    @property
    def pool(self) -> Residents:
        """The residents."""
        assert self.executor._dispatcher is not None
        return self.executor._dispatcher.residents

    def install(
        self, schemas: Mapping[str, pa.Schema], *queries: Query, fail: AbstractSet[str] = frozenset()
    ) -> Mapping[str, pa.Schema]:
        """Adds queries, each after those that it reads; one that is refused is withdrawn."""
        self.schemas.update(schemas)
        for each in queries:
            self.network.add(each)
            try:
                self.schemas.update(self.executor.install(self.network, self.schemas, fail))
            except UserError:
                self.network.free(self.network.drop(each.name))
                raise
        return {name: self.schemas[name] for name in self.network}

    def chain(self, name: str, *inputs: Input) -> Chain:
        """A query that is one chain."""
        return Chain(self.network.of(name), inputs, (name,))

    def unit(self, train: Train, *names: str) -> Unit:
        """Queries that are one chain each, over a train."""
        return Unit(f"unit{next(_numbers)}", tuple(self.chain(name, train) for name in names))

    def run(self, unit: Unit) -> UnitResult:
        self.executor.submit(unit)
        return self.wait(unit.id)

    def wait(self, unit: str, seconds: float = 240.0) -> UnitResult:
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            for result in self.executor.finished():
                if result.unit.id == unit:
                    return result
            self._clock.wait(self._clock.now() + 1.0)
        raise TimeoutError(unit)

    def read(self, result: UnitResult, stream: str) -> pa.Table | None:
        train = output_train(result, stream)
        return read_train(self.state / "segments", train) if train.rows else None
