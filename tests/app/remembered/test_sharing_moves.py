"""Queries that take up and leave shared work of all kinds at any moment answer as those that never share."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from freshet.app import App
from freshet.app.declared.checking import Catalog
from freshet.app.declared.spec import QuerySpec, StreamSpec
from freshet.app.remembered.restart import forget_query
from freshet.app.running.installing import Installer
from freshet.log import Retention
from freshet.model import Stream, parse_schema
from freshet.policies.sharing import Mode
from freshet.testing import LocalRun
from freshet.testing.schedule import POLICIES, make_policy

KEEP = Retention(history_age=None, history_bytes=None)
SCHEMA = parse_schema("ts timestamp, k string, v int")
HOSTS = [pa.table({"k": ["a", "b"], "owner": ["x", "y"]}), pa.table({"k": ["a", "c"], "owner": ["z", "y"]})]

PANES = "SELECT k, window_end AS ended, count(*) AS n FROM s [RANGE 10 s SLIDE 5 s] WHERE v > 1 GROUP BY k"
MOVING = "SELECT k, max(ts) AS ts, count(*) AS n FROM s [RANGE 6 s] GROUP BY k"
JOIN = "SELECT s.k AS k, s.v AS one, t.v AS two FROM s [RANGE 4 s] JOIN t [RANGE 6 s] ON s.k = t.k WHERE s.v > 1"
LEFT = "SELECT s.k AS k, s.v AS one, t.v AS two FROM s [RANGE 4 s] LEFT JOIN t [RANGE 6 s] ON s.k = t.k"
UNION = "SELECT k, v FROM s WHERE v > 1 UNION ALL SELECT k, v FROM t WHERE v < 5"
OVER = "SELECT k, max(n) AS n FROM panes_one [RANGE 20 s SLIDE 10 s] GROUP BY k"
LOOKUP = "SELECT s.k AS k, v, owner FROM s LEFT JOIN hosts ON s.k = hosts.k WHERE v > 1"
FAMILIES = {
    "panes": {"one": PANES, "two": PANES, "many": f"SELECT k, n FROM ({PANES}) WHERE n > 1"},
    "moving": {"one": MOVING, "two": MOVING},
    "join": {"one": JOIN, "two": JOIN, "left": LEFT, "left_too": LEFT},
    "union": {"one": UNION, "two": UNION, "plain": "SELECT v FROM s WHERE v > 1"},
    "lookup": {"one": LOOKUP, "two": LOOKUP},
    "over": {"one": OVER, "two": OVER},
}
"""Queries that have something in common, by the kind of operator that they share; the last ones read an output."""
LATE = ("late_one", "late_two")
"""Queries of a family that begin where the streams end when they come."""


def texts_of(draw: random.Random) -> dict[str, str]:
    """Some families, and late queries of one of them."""
    families = draw.sample(list(FAMILIES), 2)
    if "over" in families:
        families = ["panes", "over"]
    texts = {f"{family}_{name}": text for family in families for name, text in FAMILIES[family].items()}
    late = draw.choice([family for family in families if family != "over"])
    return texts | dict.fromkeys(LATE, FAMILIES[late]["one"])


class Installed(LocalRun):
    """An application in this process whose queries are installed as those of a real run are."""

    def __init__(self, mode: Mode, policy: str, seed: int, texts: dict[str, str]) -> None:
        app = App("tests", share=mode)
        for name in ("s", "t"):
            app.streams[name] = StreamSpec(Stream(name, SCHEMA, "ts", "UTC", None, 2.0), retention=KEEP)
        app.table("hosts", "hosts.parquet", schema="k string, owner string")
        for name, text in texts.items():
            app.queries[name] = QuerySpec(name, text, retention=KEEP, start="latest" if name in LATE else "earliest")
        self.there = [name for name in texts if name not in LATE]
        self.kinds: set[str] = set()
        super().__init__(app, policy=make_policy(policy, seed), workers=2, seed=seed, tables={"hosts": HOSTS[0]},
                         max_train_rows=random.Random(seed).choice((2, 5, 1000)))  # fmt: skip

    def _start(self, policy: Any) -> None:
        self._every = {**getattr(self, "_every", {}), **self._checked.queries}
        self._checked.queries = {name: self._every[name] for name in self._every if name in self.there}
        self.installer: Installer | None = None
        super()._start(policy)

    def _add(self, name: str, readable: Catalog) -> None:
        if self.installer is None:
            self.installer = Installer(self.app, self.engine, self.log, None, {}, lambda *_: None)  # type: ignore[arg-type]
            self.installer.park_others(self._checked.queries)
            self.installer.arrange(self._checked, self.app.queries)
        self.installer.add(self.app.queries[name])
        readable.schemas[name] = self.installer.schemas[name]

    def come(self, name: str) -> None:
        assert self.installer is not None
        self.there.append(name)
        self.installer.add(self.app.queries[name])
        self.note()

    def go(self, name: str) -> None:
        assert self.installer is not None
        self.there.remove(name)
        self.installer.drop(name)

    def rearrange(self) -> None:
        """Comes to rest and has queries share what they can."""
        assert self.installer is not None
        self.engine.at_rest(self.installer.rearrange)
        while self.engine._at_rest is not None:
            self.turn()
        self.note()

    def turns(self, count: int) -> None:
        for _ in range(count):
            self.turn()

    def note(self) -> None:
        """Notes what is shared now."""
        network = self.engine.board.network
        shared = [node for node in network.nodes if len(network.queries(node.number)) > 1]
        self.kinds |= {node.operator.tag for node in shared}
        self.kinds |= {"root" for node in shared if len(network.outputs(node.number)) > 1}


Act = Callable[[Installed], object]
DEEDS = (
    *["push"] * 4, *["turns"] * 3, *["rest"] * 2, "drain", "beat", "table", "drop", "back", "late", "stop", "crash",
    "quarantine",
)  # fmt: skip


class Script:
    """What happens, without regard to what is shared."""

    def __init__(self, seed: int, texts: dict[str, str]) -> None:
        self._draw, self._clock = random.Random(seed), 1_000.0
        self._there = [name for name in texts if name not in LATE]
        self._out: list[str] = []
        self._to_come = list(LATE)

    def acts(self) -> Iterator[Act]:
        """All of it, until nothing is left to do."""
        for _ in range(self._draw.randint(20, 50)):
            self._clock += self._draw.random() * 3
            act = getattr(self, f"_{self._draw.choice(DEEDS)}")()
            if act is not None:
                yield act
        yield from (partial(Installed.come, name=name) for name in sorted(self._out, key=lambda name: "over" in name))
        yield Installed.crash  # what was quarantined goes on where it was
        yield from (Installed.drain, Installed.rearrange, Installed.close_windows, Installed.drain)

    def _push(self) -> Act:
        draw = self._draw
        rows = [
            {"ts": self._clock - draw.random() * 2, "k": draw.choice("abc"), "v": draw.randint(0, 6)}
            for _ in range(draw.randint(1, 6))
        ]
        return partial(Installed.push, stream=draw.choice("st"), rows=rows, at=self._clock)

    def _turns(self) -> Act:
        return partial(Installed.turns, count=self._draw.randint(1, 5))

    def _drain(self) -> Act:
        return Installed.drain

    def _beat(self) -> Act:
        return partial(Installed.heartbeat, stream=self._draw.choice("st"), time=self._clock)

    def _table(self) -> Act:
        return partial(Installed.put, table="hosts", rows=self._draw.choice(HOSTS))

    def _drop(self) -> Act | None:
        overs = [name for name in self._there if name.startswith("over")]
        may = [name for name in self._there if name != "panes_one" or not overs]
        if not may:
            return None
        name = self._draw.choice(may)
        self._there.remove(name)
        self._out.append(name)
        return partial(Installed.go, name=name)

    def _back(self) -> Act | None:
        may = [name for name in self._out if not name.startswith("over") or "panes_one" not in self._out]
        if not may:
            return None
        name = self._draw.choice(may)
        self._out.remove(name)
        return self._comes(name)

    def _late(self) -> Act | None:
        return self._comes(self._to_come.pop()) if self._to_come else None

    def _comes(self, name: str) -> Act:
        self._there.append(name)
        return partial(Installed.come, name=name)

    def _stop(self) -> Act:
        return lambda run: (run.drain(), run.crash())  # type: ignore[func-returns-value]

    def _crash(self) -> Act:
        return Installed.crash

    def _rest(self) -> Act:
        return Installed.rearrange

    def _quarantine(self) -> Act | None:
        if not self._there:
            return None
        name = self._draw.choice(self._there)
        return lambda run: run.engine.quarantine(name, "the test wants it")


def play(mode: Mode, seed: int) -> tuple[dict[str, Counter[tuple[Any, ...]]], set[str]]:
    """The answers, and what was shared at some time."""
    draw = random.Random(seed)
    texts = texts_of(draw)
    with Installed(mode, draw.choice(POLICIES), seed, texts) as run:
        run.note()
        for act in Script(seed, texts).acts():
            act(run)
        board = run.engine.board
        assert all(board.queries[number].active for number in board.numbers.values())
        return {name: Counter(tuple(row.values()) for row in run.rows(name)) for name in run.there}, run.kinds


@pytest.mark.parametrize("seed", range(16))
def test_answers_do_not_depend_on_sharing(seed: int) -> None:
    apart, kinds = play("never", seed)
    assert kinds == set()
    together, kinds = play("always", seed)
    assert "root" in kinds
    assert together == apart


# One thing at a time


def rows(*at: tuple[float, str, int]) -> list[dict[str, Any]]:
    return [{"ts": ts, "k": k, "v": v} for ts, k, v in at]


def started(texts: dict[str, str], mode: Mode = "always", policy: str = "everything") -> Installed:
    return Installed(mode, policy, 0, texts)


def nodes(run: Installed, query: str) -> set[str]:
    """The operators of a query."""
    network = run.engine.board.network
    return {network.nodes[number].name for number in network.of(query)}


def shared(run: Installed, *queries: str) -> set[str]:
    """The kinds of the operators that queries have in common."""
    network = run.engine.board.network
    common = set.intersection(*(set(network.of(query)) for query in queries))
    return {network.nodes[number].operator.tag for number in common}


def counts(run: Installed, query: str) -> dict[float, int]:
    return {row["ended"].timestamp(): row["n"] for row in run.rows(query)}


def test_a_query_that_leaves_a_shared_window_takes_it_along_half_open() -> None:
    with started({"one": PANES, "two": PANES}) as run:
        assert shared(run, "one", "two") == {"filter", "project", "panes"}
        run.push("s", rows((1001.0, "a", 5), (1002.0, "a", 5)), at=1002)
        run.drain()
        run.go("two")
        run.push("s", rows((1003.0, "a", 5), (1013.0, "a", 5)), at=1013)
        run.drain()
        assert counts(run, "one") == {1005.0: 3, 1010.0: 3}
        assert counts(run, "two") == {}
        run.come("two")
        run.drain()
        assert counts(run, "two") == counts(run, "one")
        # Both have read all of it since the same tuple: they may share again.
        assert shared(run, "one", "two") == set()
        run.rearrange()
        assert shared(run, "one", "two") == {"filter", "project", "panes"}
        run.close_windows()
        run.drain()
        assert counts(run, "two") == counts(run, "one") == {1005.0: 3, 1010.0: 3, 1015.0: 1, 1020.0: 1}


def test_folds_that_began_at_different_tuples_are_not_shared() -> None:
    with started({"one": PANES, "late_one": PANES, "late_two": PANES}) as run:
        run.push("s", rows((1001.0, "a", 5)), at=1001)
        run.come("late_one")
        run.push("s", rows((1002.0, "a", 5)), at=1002)
        run.come("late_two")
        run.push("s", rows((1003.0, "a", 5)), at=1003)
        run.drain()
        run.rearrange()
        assert shared(run, "late_one", "late_two") == {"filter", "project"}
        run.close_windows()
        run.drain()
        assert {name: counts(run, name)[1005.0] for name in run.there} == {"one": 3, "late_one": 2, "late_two": 1}


def test_folds_that_have_brought_event_time_to_different_places_are_not_shared() -> None:
    with started({"one": PANES, "two": PANES}) as run:
        run.push("s", rows((1001.0, "a", 5), (1008.0, "a", 5)), at=1008)
        run.go("two")
        run.come("two")
        run.drain()
        run.hold(["two"])
        run.turn()
        run.heartbeat("s", 1012.5)
        run.turns(9)
        assert (counts(run, "one"), counts(run, "two")) == ({1005.0: 1, 1010.0: 2}, {1005.0: 1})
        run.hold([])
        run.rearrange()
        assert shared(run, "one", "two") == {"filter", "project"}
        run.drain()
        assert counts(run, "one") == counts(run, "two") == {1005.0: 1, 1010.0: 2}


def test_a_query_that_missed_tuples_has_a_fold_of_its_own() -> None:
    with started({"one": PANES, "two": PANES}) as run:
        run.push("s", rows((1001.0, "a", 5)), at=1001)
        run.drain()
        run.go("two")
        run.push("s", rows((1000.5, "a", 5)), at=1002)
        run.drain()
        run.log.declare("s", Retention(history_age=0.0, history_bytes=0))
        run.log.collect()
        run.come("two")
        run.rearrange()
        assert shared(run, "one", "two") == {"filter", "project"}
        run.crash()
        assert shared(run, "one", "two") == {"filter", "project"}
        run.close_windows()
        run.drain()
        assert (counts(run, "one")[1005.0], counts(run, "two")[1005.0]) == (2, 1)


def test_a_query_that_is_dropped_while_shared_work_runs_finds_each_tuple_once() -> None:
    plain = "SELECT v FROM s WHERE v > 1"
    for texts in ({"one": plain, "two": plain}, {"one": plain, "two": "SELECT k FROM s WHERE v > 1"}):
        with started(texts, policy="one-box") as run:
            run.push("s", rows((1001.0, "a", 5), (1002.0, "a", 6)), at=1002)
            run.turn()
            assert run.engine.board.operators[0].running
            run.go("two")
            run.drain()
            assert len(run.rows("one")) == 2
            run.come("two")
            run.drain()
            assert len(run.rows("two")) == 2


def test_one_that_comes_takes_up_a_fold_only_before_it_has_read() -> None:
    with started({"one": PANES, "two": PANES, "late_one": PANES, "late_two": PANES}) as run:
        run.push("s", rows((1001.0, "a", 5)), at=1001)
        run.drain()
        run.come("late_one")
        run.rearrange()
        run.come("late_two")
        run.rearrange()
        assert shared(run, "late_one", "late_two") == {"filter", "project", "panes"}
        assert shared(run, "one", "late_one") == set()


def test_meters_and_operators_are_reported_for_each_query() -> None:
    with started({"one": PANES, "two": PANES}) as run:
        run.push("s", rows((1001.0, "a", 5), (1002.0, "b", 0)), at=1002)
        run.close_windows()
        run.drain()
        queries = run.engine.snapshot()["queries"]
        assert {
            name: (each["tuples_in"], each["tuples_out"], list(each["operators"])) for name, each in queries.items()
        } == {
            name: (2, 2, sorted(nodes(run, "one"), key=list(queries["one"]["operators"]).index))
            for name in ("one", "two")
        }


def test_who_fails_on_errors_shares_nothing() -> None:
    with started({"one": PANES, "two": PANES}) as run:
        assert run.installer is not None
        run.app.queries["three"] = QuerySpec("three", PANES, on_error="fail", retention=KEEP)
        run.come("three")
        run.rearrange()
        assert shared(run, "one", "three") == set()
        assert shared(run, "one", "two") == {"filter", "project", "panes"}


def test_a_join_of_which_one_input_was_silent_is_forgotten_as_a_whole() -> None:
    with started({"one": JOIN}) as run:
        run.push("t", rows((1001.0, "a", 5)), at=1001)
        run.drain()
        states = {name for name, reader in run.log.readers().items() if reader.kind == "state"}
        assert states == {"one.join_1.state_2"}
        forget_query(run.log, "one")
        assert states.isdisjoint(run.log.readers())
        assert states.isdisjoint(run.log.streams())
