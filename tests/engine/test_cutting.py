"""Steps are cut where some of their operators go a slower way: it must not become that of the others."""

from __future__ import annotations

from tests.engine.kit import Application

from freshet.engine import Event
from freshet.engine.events import Submitted

QUERIES = {
    "plain": "SELECT v FROM s WHERE v > 1",
    "slow": "SELECT k FROM s WHERE v > 2",
    "sums": "SELECT k, sum(v) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] WHERE v > 3 GROUP BY k",
    "sorted": "SELECT k, sum(v) AS n FROM s [RANGE 20 SECONDS SLIDE 20 SECONDS] WHERE v > 3 GROUP BY k",
}


class Units:
    """Notes the queries of each unit."""

    def __init__(self, app: Application) -> None:
        self.app = app
        self.queries: list[set[str]] = []
        app.engine.observers.append(self)

    def tell(self, event: Event) -> None:
        if isinstance(event, Submitted):
            found = (self.app.engine.board.network.queries(number) for number in event.unit.nodes)
            self.queries.append({name for names in found for name in names})


def played(share: bool, *slow: str) -> tuple[Application, list[set[str]]]:
    """An application after one step for everything, in which the last operators of some queries are slow."""
    app = Application(QUERIES, share=share)
    units = Units(app)
    app.executor.slow = frozenset(app.engine.board.network.root(name) for name in slow)
    app.append("s", [(0.5, "a", 2), (0.7, "b", 5), (1.0, "a", 7)])
    app.run()
    return app, units.queries


def test_what_is_quick_runs_first_in_a_unit_of_its_own() -> None:
    app, units = played(False, "slow")
    assert units == [QUERIES.keys() - {"slow"}, {"slow"}]
    whole, together = played(False)
    assert together == [set(QUERIES)]
    assert {name: app.answers(name) for name in QUERIES} == {name: whole.answers(name) for name in QUERIES}


def test_what_is_connected_with_something_slow_is_slow() -> None:
    _, units = played(True, "sorted")
    assert units == [{"plain", "slow"}, {"sums", "sorted"}]


def test_if_all_is_slow_there_is_one_unit() -> None:
    assert played(False, *QUERIES)[1] == [{"plain", "slow", "sums", "sorted"}]
