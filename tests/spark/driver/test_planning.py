"""Which jobs the chains of a unit make; without Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from freshet.model import (
    Call,
    Chain,
    Filter,
    Join,
    Lifetime,
    Network,
    Operator,
    Panes,
    Project,
    Query,
    QueryGraph,
    Segment,
    State,
    Train,
    Union,
    Unit,
    parse_schema,
)
from freshet.model.scheduling.unit import components
from freshet.spark.driver.installation import Installation
from freshet.spark.driver.planning import Planner, TaskLimits, jobs

SCHEMA = parse_schema("ts bigint, k string, v bigint")
NEVER = TaskLimits(2, 2**40, 10.0)
ALWAYS = TaskLimits(2, -1, -1.0, kept_bytes=-2)


class Spark:
    """Says of every expression that it is a text."""

    def plain(self, operator: Operator, schema: pa.Schema) -> pa.Schema:
        return schema if operator.makes is None else pa.schema([(name, pa.string()) for name, _ in operator.makes])


def installed(*graphs: tuple[str, dict[str, tuple[Operator, tuple[str, ...]]]]) -> tuple[Installation, dict[str, int]]:
    """Queries, each as operators with what they read; and the numbers of the operators."""
    network = Network()
    for query, nodes in graphs:
        operators = {name: operator for name, (operator, _) in nodes.items()}
        inputs = {name: inputs for name, (_, inputs) in nodes.items()}
        network.add(Query(query, "", QueryGraph(operators, inputs, list(nodes)[-1])))
    installation = Installation(Spark())  # type: ignore[arg-type]
    installation.extend(network, {"s": SCHEMA, "t": SCHEMA})
    return installation, {node.name: node.number for node in network.nodes}


def plan(installation: Installation, unit: Unit, limits: TaskLimits = NEVER) -> list[tuple[str, list[tuple[int, ...]]]]:
    """The jobs of a unit: the form of each, and the nodes of its pieces."""
    planner = Planner(unit, installation, limits)
    pieces = planner.pieces(components(unit.chains))
    return [(form, [pieces[number].chain.nodes for number in numbers]) for form, numbers in jobs(pieces)]


S, T = Train("s", 0, 100), Train("t", 0, 50)
COMPILED = "v > 1"
OTHER = "initcap(k) = 'X'"


def test_what_is_compiled_is_one_job_whatever_hangs_together() -> None:
    common = Filter("shared", COMPILED), ("s",)
    installation, at = installed(
        ("a", {"shared": common, "a.1": (Filter("a.1", COMPILED), ("shared",))}),
        ("b", {"shared": common, "b.1": (Filter("b.1", COMPILED), ("shared",))}),
        ("c", {"c.1": (Filter("c.1", COMPILED), ("t",))}),
    )
    chains = (Chain((at["shared"],), (S,)), Chain((at["a.1"],), (0,)), Chain((at["b.1"],), (0,)), Chain((3,), (T,)))
    assert plan(installation, Unit("u", chains)) == [("vectorised", [(0,), (1,), (2,), (3,)])]
    groups = Planner(Unit("u", chains), installation, NEVER).groups(components(chains))
    assert list(groups) == [[(0, 1, 2), (3,)]]


def test_pieces_wait_for_other_forms_and_what_is_compiled_goes_with_its_reader() -> None:
    installation, at = installed(
        (
            "q",
            {
                "q.left": (Filter("q.left", OTHER), ("s",)),
                "q.right": (Filter("q.right", COMPILED), ("t",)),
                "q.union": (Union("q.union"), ("q.left", "q.right")),
                "q.after": (Filter("q.after", OTHER), ("q.union",)),
                "q.cast": (Project("q.cast", (("k", "k"),)), ("q.after",)),
            },
        )
    )
    left, right, union, after, cast = at.values()
    chains = (Chain((left,), (S,)), Chain((right,), (T,)), Chain((union, after, cast), (0, 1), ("q",)))
    assert plan(installation, Unit("u", chains)) == [
        ("catalyst", [(left,)]),
        ("vectorised", [(right,), (union,)]),
        ("catalyst", [(after, cast)]),
    ]


def test_a_large_join_is_shuffled_and_a_small_one_is_not() -> None:
    minute = Lifetime("ts", 60)
    join = Join("q.join", "inner", (minute, minute), (("k",), ("k",)), (("v", 0, "v"),))
    installation, at = installed(
        ("q", {"q.join": (join, ("s", "t")), "q.project": (Project("q.project", (("v", "v"),)), ("q.join",))})
    )
    chain = Chain(tuple(at.values()), (S, T), ("q",))
    unit = Unit("u", (chain,), (State("q.join", (), (None, None), (None, None)),))
    assert plan(installation, unit) == [("vectorised", [(0, 1)])]
    assert plan(installation, unit, ALWAYS) == [("shuffled", [(0,)]), ("vectorised", [(1,)])]


def test_a_join_whose_worker_keeps_its_states_pays_for_new_tuples_alone() -> None:
    """However many cores there are, a short train is not shuffled with millions of remembered tuples."""
    minute = Lifetime("ts", 60)
    join = Join("q.join", "inner", (minute, minute), (("k",), ("k",)), (("v", 0, "v"),))
    installation, _ = installed(("q", {"q.join": (join, ("s", "t"))}))
    ranges = tuple(
        Train(name, 0, 10_000_000, (Segment(name, 0, 10_000_000, 0, 0, 0, "f", 0, 300 * 2**20),)) for name in ("a", "b")
    )
    unit = Unit("u", (Chain((0,), (S, T), ("q",)),), (State("q.join", ranges, (None, None), (None, None)),))
    many = TaskLimits(64, kept_bytes=2**30)
    assert plan(installation, unit, many) == [("vectorised", [(0,)])]
    assert plan(installation, unit, replace(many, kept_bytes=2**29)) == [("shuffled", [(0,)])]
    assert plan(installation, unit, replace(many, cores=2, kept_bytes=2**29)) == [("vectorised", [(0,)])]
    assert plan(installation, unit, TaskLimits(2, 2**29, kept_bytes=2**29)) == [("shuffled", [(0,)])]
    assert plan(installation, unit, TaskLimits(2, 2**29, kept_bytes=2**30)) == [("vectorised", [(0,)])]


def test_folds_with_a_state_in_parts_have_a_job_each() -> None:
    minute = Lifetime("ts", 60)
    join = Join("q.join", "inner", (minute, minute), (("k",), ("k",)), (("ts", 0, "ts"), ("k", 0, "k"), ("v", 1, "v")))
    columns = Project("q.columns", (("ts", "ts"), ("k", "concat(k, 'x')"), ("v", "v")))
    last = Project("q.project", (("n", "n"),))
    installation, at = installed(
        (
            "q",
            {
                "q.join": (join, ("s", "t")),
                "q.columns": (columns, ("q.join",)),
                "q.panes": (panes("q.panes"), ("q.columns",)),
                "q.project": (last, ("q.panes",)),
            },
        )
    )
    assert installation.is_divisible("q.join")
    assert installation.is_divisible("q.panes")
    chain = Chain(tuple(at.values()), (S, T), ("q",))
    for parts in ((1, 1), (2, 1), (1, 2), (2, 2)):
        states = (
            State("q.join", (), (None, None), (None, None), parts=parts[0]),
            State("q.panes", (), (None,), (None,), parts=parts[1]),
        )
        found = plan(installation, Unit("u", (chain,), states), NEVER if max(parts) == 1 else ALWAYS)
        if parts == (1, 2):  # a state in one part may still be shuffled
            assert found == [("shuffled", [(0,)]), ("vectorised", [(1, 2, 3)])]
        else:
            both = [("vectorised", [(0, 1)]), ("vectorised", [(2, 3)])]
            assert found == ([("vectorised", [(0, 1, 2, 3)])] if max(parts) == 1 else both)
    apart = [Chain((0, 1), (S, T)), Chain((2, 3), (0,), ("q",))]
    assert plan(installation, Unit("u", tuple(apart), states)) == [("vectorised", [(0, 1)]), ("vectorised", [(2, 3)])]


def panes(name: str, emit: Any = "closed") -> Panes:
    return Panes(name, Lifetime("ts", 60), 60, ("k",), (Call("n", "count"),), emit)


def state(fold: str) -> State:
    return State(fold, (), (None,), (None,))


def test_large_trains_are_merged_in_parts_up_to_the_first_aggregate() -> None:
    installation, at = installed(
        (
            "q",
            {
                "q.left": (Filter("q.left", COMPILED), ("s",)),
                "q.union": (Union("q.union"), ("q.left", "t")),
                "q.panes": (panes("q.panes"), ("q.union",)),
                "q.having": (Filter("q.having", "n > 1"), ("q.panes",)),
            },
        )
    )
    left, *rest = at.values()
    unit = Unit("u", (Chain((left,), (S,)), Chain(tuple(rest), (0, T), ("q",))), (state("q.panes"),))
    assert plan(installation, unit) == [("vectorised", [(0,), (1, 2, 3)])]
    assert plan(installation, unit, ALWAYS) == [("vectorised", [(0,), (1, 2)]), ("vectorised", [(2, 3)])]
    pieces = Planner(unit, installation, ALWAYS).pieces(components(unit.chains))
    assert [piece.parted for piece in pieces] == [False, True, False]
    assert [piece.chain.writes for piece in pieces] == [(), (), ("q",)]


def test_what_hangs_together_with_a_fold_that_sees_all_tuples_at_once_stays_in_one_task() -> None:
    common = Filter("shared", COMPILED), ("s",)
    installation, at = installed(
        ("a", {"shared": common, "a.panes": (panes("a.panes"), ("shared",))}),
        ("b", {"shared": common, "b.panes": (panes("b.panes", "changes"), ("shared",))}),
    )
    chains = Chain((at["shared"],), (S,)), Chain((at["a.panes"],), (0,), ("a",)), Chain((at["b.panes"],), (0,), ("b",))
    unit = Unit("u", chains, (state("a.panes"), state("b.panes")))
    assert plan(installation, unit, ALWAYS) == [("vectorised", [(0,), (1,), (2,)])]
