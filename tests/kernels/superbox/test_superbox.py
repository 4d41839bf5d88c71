"""Chains that run together answer as each of them does alone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.kernels.folds.aggregates import close
from tests.kernels.folds.logs import SCHEMA, Step, logs, plain, table
from tests.kernels.folds.test_panes import CALLS

from freshet.kernels.folds.panes import common
from freshet.kernels.superbox.pipeline import Memory, Piped
from freshet.kernels.superbox.superbox import Operators, Superbox
from freshet.model import ARRIVAL, Call, Filter, Lifetime, Panes, Project
from freshet.model.operators import WINDOW_END

FILTERS = ("t < 100", "b OR k IS NOT NULL", "s <> 'z'")
KEYS = st.sampled_from([(), ("k",), ("k", "f"), ("f", "k")])
WINDOWS = st.sampled_from([(10, 10), (10, 5), (12, 4), (7, 3), (30, 1), (20, 10)])
COLUMNS = tuple((name, name) for name in SCHEMA.names)


@pytest.fixture(autouse=True, params=[True, False], ids=["always", "where it pays"])
def shares(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        monkeypatch.setattr(common, "_WORTH", 1e9)


def sliding(
    name: str, filters: Any, window: tuple[int, int], keys: tuple[str, ...], calls: tuple[Call, ...]
) -> Operators:
    size, slide = window
    before = tuple(Filter(f"{name}.filter_{place}", text) for place, text in enumerate(filters))
    panes = Panes(name, Lifetime("ts", size), slide, keys, calls)
    return (*before, Project(f"{name}.input", COLUMNS), panes, Filter(f"{name}.having", f"{WINDOW_END} IS NOT NULL"))


@st.composite
def chains(draw: st.DrawFn) -> list[Operators]:
    found = []
    for number in range(draw(st.integers(2, 5))):
        calls = tuple(draw(st.lists(st.sampled_from(CALLS), max_size=3, unique=True)))
        filters = draw(st.permutations(FILTERS))[: draw(st.sampled_from([0, 2, 2, 3]))]
        found.append(sliding(f"q{number}", filters, draw(WINDOWS), draw(KEYS), calls))
    plain_chain = (Filter("p.filter", FILTERS[0]), Project("p.project", (("x", "t + 1"),)))
    return [*found, plain_chain] if draw(st.booleans()) else found


class Running:
    """Chains over a log, all in one superbox."""

    def __init__(self, chains: list[Operators]) -> None:
        self.box = Superbox(chains, SCHEMA)
        self._folds = {
            name: fold.live([each.empty_table() for each in fold.states])
            for number in range(len(chains))
            for name, fold in self.box.folds(number).items()
        }

    def step(self, rows: pa.Table, before: int | None, after: int | None) -> list[Piped]:
        found = []
        for number, begun in enumerate(self.box.begin(rows)):
            names = self.box.folds(number)
            # How many rows each stream had matters only to who writes them.
            memories = {
                name: Memory(self._folds[name], [0] * len(fold.states), (before,), (after,))
                for name, fold in names.items()
            }
            found.append(begun.finish(memories))
            self._folds |= {name: memory.fold for name, memory in memories.items()}
        return found


def ordered(output: pa.Table | pa.RecordBatch, keys: Any) -> list[dict[str, Any]]:
    rows = plain(output if isinstance(output, pa.Table) else pa.Table.from_batches([output]))
    return sorted(rows, key=lambda row: (row.get(WINDOW_END, 0), *(str(row[key]) for key in keys)))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(logs(), chains())
def test_together_as_alone(steps: list[Step], chains: list[Operators]) -> None:
    together, alone = Running(chains), [Running([chain]) for chain in chains]
    before: int | None = None
    for step in steps:
        rows = table(step.rows)
        shared = together.step(rows, before, step.watermark)
        single = [running.step(rows, before, step.watermark)[0] for running in alone]
        before = step.watermark
        for chain, one, other in zip(chains, shared, single, strict=True):
            assert one.passed == other.passed
            assert one.errors == other.errors
            assert len(one.nanos) == len(chain)
            panes = next((each for each in chain if isinstance(each, Panes)), None)
            keys, calls = (panes.keys, panes.calls) if panes else ((), ())
            lines = list(zip(ordered(one.table, keys), ordered(other.table, keys), strict=True))
            for mine, theirs in lines:
                assert mine.keys() == theirs.keys()
                assert str(mine[ARRIVAL]) == str(theirs[ARRIVAL])
                for call in calls:
                    values = [member.get(call.column) if call.column else 1 for some in steps for member in some.rows]
                    assert close(call, mine[call.output], theirs[call.output], values)


def test_what_chains_must_have_in_common() -> None:
    count = (Call("n", "count"),)
    same = sliding("a", FILTERS[:2], (10, 5), ("k",), count)
    turned = sliding("b", FILTERS[1::-1], (30, 15), ("k",), (Call("m", "max", "t"),))
    others = [
        sliding("c", FILTERS[:2], (10, 5), ("f",), count),
        sliding("d", FILTERS[:1], (10, 5), ("k",), count),
        (*same[:3], Panes("e", Lifetime(None, 10), 5, ("k",), count)),
    ]
    assert Superbox([same, *others, turned], SCHEMA).families == ((0, 4),)


def test_an_error_counts_for_the_chain_whose_it_is(shares: None) -> None:
    def chain(name: str, text: str) -> Operators:
        columns = Project(f"{name}.input", (("ts", "ts"), ("x", text)))
        return (columns, Panes(name, Lifetime("ts", 10), 10, (), (Call("s", "sum", "x"),)))

    rows = table([{**dict.fromkeys(SCHEMA.names), "ts": n, "t": n, "i": n, ARRIVAL: n} for n in range(10)])
    running = Running([chain("a", "t + 1"), chain("b", "10 / i")])
    assert running.box.families == ((0, 1),)
    first, second = running.step(rows, None, 10)
    assert (first.errors, second.errors) == (0, 1)
    assert [row["s"] for row in plain(first.table)] == [55]
