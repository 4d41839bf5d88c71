"""Chains of a unit that read each other: each runs once, after what it reads, and failures go downstream only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from freshet.kernels import CompiledFold, compile_fold
from freshet.kernels.columns import NetworkColumns
from freshet.kernels.key_split import KeyedTrain, KeyPath
from freshet.kernels.running import Made, Runner
from freshet.kernels.superbox.pipeline import Memory
from freshet.kernels.superbox.superbox import Operators, Superbox
from freshet.kernels.table_join import Version
from freshet.kernels.typer import KernelTyper
from freshet.model import (
    ARRIVAL,
    Chain,
    Filter,
    Fold,
    Join,
    Lifetime,
    Network,
    Operator,
    Project,
    Query,
    QueryGraph,
    Train,
    Union,
)
from freshet.model.operators import FROM, UNTIL

SCHEMA = pa.schema([("ts", pa.int64()), ("v", pa.int64())])
ROWS = {
    "s": [(1, 1), (2, 2), (3, 3), (4, 4)],
    "t": [(2, 2), (4, 40)],
}


class World:
    """Streams of rows, and operators over them."""

    rows_out: int | None = None
    blameless: tuple[type[Exception], ...] = (OSError,)

    def __init__(self, *graphs: tuple[str, QueryGraph]) -> None:
        self.network, self.columns = Network(), NetworkColumns(KernelTyper())
        for name, graph in graphs:
            self.network.add(Query(name, "", graph))
        self.columns.extend(self.network, {"s": SCHEMA, "t": SCHEMA})
        self.reads: list[str] = []
        self.boxes: list[int] = []
        self.memories: dict[str, Memory] = {}

    def operators(self, nodes: Sequence[int]) -> tuple[Operator, ...]:
        return tuple(self.network.nodes[number].operator for number in nodes)

    def inputs(self, node: int) -> Sequence[pa.Schema]:
        return self.columns.inputs[node]

    def behind(self, node: int) -> pa.Schema:
        return self.columns.behind[node]

    def superbox(self, chains: tuple[Operators, ...], schema: pa.Schema) -> Superbox:
        self.boxes.append(len(chains))
        return Superbox(chains, schema)

    def fold(self, operator: Fold, inputs: Sequence[pa.Schema]) -> CompiledFold:
        return compile_fold(operator, *inputs)

    def read(self, train: Train, columns: pa.Schema) -> pa.Table:
        self.reads.append(train.stream)
        rows = ROWS[train.stream][train.first : train.end]
        arrays = [pa.array([row[place] for row in rows], pa.int64()) for place in range(2)]
        table = pa.table([*arrays, pa.array(range(len(rows)), pa.int64())], names=["ts", "v", ARRIVAL])
        return train.select(table) if isinstance(train, KeyedTrain) else table

    def memory(self, fold: str, compiled: CompiledFold) -> Memory:
        assert fold not in self.memories, f"{fold} runs twice"
        states = [schema.empty_table() for schema in compiled.states]
        self.memories[fold] = Memory.of(compiled, states, (None, None), (4, 4))
        return self.memories[fold]

    def versions(self, table: str) -> Sequence[Version]:
        return ()

    def run(self, *chains: Chain) -> dict[int, Made]:
        return {made.place: made for made in Runner(chains, self).run()}


def column(made: Made, name: str) -> list[Any]:
    assert made.table is not None
    found: list[Any] = made.table.column(name).to_pylist()
    return found


def shared() -> World:
    """A filter whose output three queries read."""
    common = Filter("shared:1", "v > 1")

    def query(name: str, text: str) -> tuple[str, QueryGraph]:
        return name, QueryGraph.straight("s", [common, Project(f"{name}.project", (("w", text),))])

    return World(query("a", "v"), query("b", "v * 2"), query("c", "v % 3"))


WHOLE = Train("s", 0, 4)


def test_what_several_chains_read_is_computed_once_and_they_run_as_one_superbox() -> None:
    world = shared()
    made = world.run(Chain((0,), (WHOLE,)), Chain((1,), (0,), ("a",)), Chain((2,), (0,), ("b",)), Chain((3,), (0,)))
    assert [column(made[place], "w") for place in (1, 2, 3)] == [[2, 3, 4], [4, 6, 8], [2, 0, 1]]
    assert (world.reads, world.boxes) == (["s"], [1, 3])
    assert (made[0].entered, made[0].passed, made[1].entered, made[1].passed) == ((4,), (3,), (3,), (3,))


def test_chains_over_other_divisions_of_a_train_do_not_run_together() -> None:
    world = World(*((name, QueryGraph.straight("s", [Project(f"{name}.project", (("w", "v"),))])) for name in "ab"))
    path = KeyPath((), ("v",), (pa.int64(),))
    two, three = (KeyedTrain("s", 0, 4, path=path, own=range(1), parts=parts) for parts in (2, 3))
    alone = [column(world.run(Chain((node,), (train,)))[0], "w") for node, train in enumerate((two, three))]
    assert alone[0] != alone[1]
    made = world.run(Chain((0,), (two,)), Chain((1,), (three,)))
    assert [column(made[place], "w") for place in range(2)] == alone


def test_a_join_takes_what_comes_in_at_both_ports_and_runs_once() -> None:
    minute = Lifetime("ts", 60)
    columns: tuple[tuple[str, Any, str], ...] = (("a", 0, "v"), ("b", 1, "v"))
    join = Join("q.join", "inner", (minute, minute), (("ts",), ("ts",)), columns)
    last = Project("q.project", (("total", "a + b"),))
    graph = QueryGraph(
        {"q.left": Filter("q.left", "v > 1"), "q.join": join, "q.project": last},
        {"q.left": ("s",), "q.join": ("q.left", "t"), "q.project": ("q.join",)},
        "q.project",
    )
    world = World(("q", graph))
    made = world.run(Chain((0,), (WHOLE,)), Chain((1, 2), (0, Train("t", 0, 2)), ("q",)))
    assert sorted(column(made[1], "total")) == [4, 44]
    assert (made[1].entered, made[1].passed) == ((3, 2), (2, 2))
    assert [sum(table.num_rows for table in tables) for tables in world.memories["q.join"].appended] == [3, 2]
    assert {FROM, UNTIL} <= set(world.behind(1).names)


def test_a_union_agrees_on_names_and_types() -> None:
    graph = QueryGraph(
        {
            "q.one": Project("q.one", (("x", "CAST(v AS INT)"),)),
            "q.two": Project("q.two", (("y", "v / 2"),)),
            "q.union": Union("q.union"),
        },
        {"q.one": ("s",), "q.two": ("t",), "q.union": ("q.one", "q.two")},
        "q.union",
    )
    made = World(("q", graph)).run(Chain((0,), (WHOLE,)), Chain((1,), (Train("t", 0, 2),)), Chain((2,), (0, 1), ("q",)))
    assert column(made[2], "x") == [1.0, 2.0, 3.0, 4.0, 1.0, 20.0]


def test_a_failure_stops_what_is_behind_it_and_nobody_else() -> None:
    world = shared()
    world.rows_out = 0
    one = world.run(Chain((0,), (WHOLE,)), Chain((1,), (0,), ("a",)))
    assert "max_rows_out_per_row" in (one[0].failure or "")
    assert one[1].failure == one[0].failure


def test_what_is_no_chains_fault_ends_the_unit() -> None:
    world = shared()
    world.superbox = None  # type: ignore[assignment,method-assign]
    made = world.run(Chain((0,), (WHOLE,)))
    assert made[0].failure is not None

    def lost(train: Train, columns: pa.Schema) -> pa.Table:
        raise FileNotFoundError(train.stream)

    world = shared()
    world.read = lost  # type: ignore[method-assign]
    with pytest.raises(FileNotFoundError):
        world.run(Chain((0,), (WHOLE,)))
