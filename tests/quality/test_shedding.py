"""The shedder: how much is left out, of which query, and when it ends."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.model import Promises, Shed
from freshet.model.promises.quality_table import QualityTable
from freshet.policies import Everything
from freshet.quality.shedding import LEAST, OFF, ON, QueryLoad, Shedder, deal, loads
from freshet.simulation.executor import Profile
from freshet.simulation.view import RecordView
from freshet.simulation.world import SimulatedQuery, World

TABLES = [QualityTable.parse(each) for each in ("tolerant", "proportional", "strict", [(0.5, 0.9), (1, 1)])]


def test_half_of_a_violated_query_goes_at_a_load_of_1_2_where_its_own_is_0_5() -> None:
    kept = Shedder().look([QueryLoad("q", 0.5, violated=True), QueryLoad("other", 0.7)])
    assert kept == {"q": pytest.approx(0.5)}


def test_others_that_allow_it_follow_if_that_is_not_enough() -> None:
    queries = [QueryLoad("q", 0.1, violated=True), QueryLoad("other", 0.5), QueryLoad("never", 0.6, thin=False)]
    kept = Shedder().look(queries)
    assert kept["q"] == pytest.approx(LEAST)
    assert 0.1 * (1 - kept["q"]) + 0.5 * (1 - kept["other"]) == pytest.approx(1.2 - ON)
    only_others = Shedder().look([QueryLoad("q", 0.5, thin=False, violated=True), QueryLoad("other", 0.7)])
    assert only_others == {"other": pytest.approx(1 - 0.25 / 0.7)}


def test_nothing_goes_before_a_query_is_violated_and_it_ends_with_hysteresis() -> None:
    shedder = Shedder()

    def look(load: float, violated: bool = False) -> dict[str, float]:
        return shedder.look([QueryLoad("q", load, violated=violated)])

    assert look(1.5) == {}
    assert look(0.9, violated=True) == {}, "there is no excess"
    assert look(1.9, violated=True) == {"q": pytest.approx(0.5)}
    assert look(1.9) == {"q": pytest.approx(0.5)}, "it is content because of what is left out"
    assert look(0.95 * 4 / 3) == {"q": pytest.approx(0.75)}
    assert look(0.95 * 4 / 3 + 0.01) == {"q": pytest.approx(0.75)}, "each change is an entry of the ledger"
    for load in (0.94, OFF):
        assert look(load) == {"q": pytest.approx(0.75)}
    assert look(0.84) == look(0.94) == look(1.5) == {}


def test_several_workers_do_more() -> None:
    kept = Shedder().look([QueryLoad("q", 2.0, violated=True)], capacity=2.0)
    assert kept == {"q": pytest.approx(1 - 0.1 / 2.0)}


def test_of_equal_queries_a_strict_one_is_thinned_last_and_then_by_itself() -> None:
    tolerant, strict = (QueryLoad(name, 1.0, quality=QualityTable.parse(name)) for name in ("tolerant", "strict"))
    assert deal([strict, tolerant], 0.5) == {"tolerant": pytest.approx(0.5)}
    two = [QueryLoad(name, 1.0, quality=strict.quality) for name in "ab"]
    assert deal(two, 0.5) == {"a": pytest.approx(0.5)}, "half of one, not a quarter of each"


queries = st.lists(
    st.tuples(st.floats(0.01, 2.0), st.sampled_from(TABLES), st.floats(0.01, 1.0), st.booleans()),
    min_size=1,
    max_size=6,
)


@given(drawn=queries, excess=st.floats(0.001, 5.0))
def test_never_more_than_the_excess_and_all_of_it_where_possible(
    drawn: list[tuple[float, QualityTable, float, bool]], excess: float
) -> None:
    loads_ = [QueryLoad(str(n), load, quality=table, weight=w) for n, (load, table, w, _) in enumerate(drawn)]
    freed = deal(loads_, excess)
    room = sum(query.load for query in loads_) * (1 - LEAST)
    assert sum(freed.values()) == pytest.approx(min(excess, room))
    assert all(0 < freed[q.name] <= q.load * (1 - LEAST) * (1 + 1e-9) for q in loads_ if q.name in freed)


@given(drawn=queries, capacity=st.floats(0.5, 4.0))
def test_a_look_leaves_out_the_excess_and_never_touches_queries_that_do_not_allow_it(
    drawn: list[tuple[float, QualityTable, float, bool]], capacity: float
) -> None:
    given_ = [QueryLoad(str(n), load, thin, True, w, table) for n, (load, table, w, thin) in enumerate(drawn)]
    kept = Shedder().look(given_, capacity)
    by_name = {query.name: query for query in given_}
    assert all(by_name[name].thin and LEAST <= ratio < 1.0 for name, ratio in kept.items())
    excess = max(0.0, sum(query.load for query in given_) - ON * capacity)
    room = sum(query.load for query in given_ if query.thin) * (1 - LEAST)
    assert sum(by_name[name].load * (1 - ratio) for name, ratio in kept.items()) == pytest.approx(min(excess, room))


@given(
    drawn=st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from([*TABLES[:2], TABLES[3]]), st.integers(1, 4)),
        min_size=2,
        max_size=3,
    ),
    wanted=st.integers(1, 6),
)
def test_no_other_way_to_deal_loses_less(drawn: list[tuple[int, QualityTable, int]], wanted: int) -> None:
    """Where worth falls the faster the more is left out, the greedy order is the best one."""
    some = [QueryLoad(str(n), float(load), quality=table, weight=w / 4) for n, (load, table, w) in enumerate(drawn)]
    excess = min(wanted / 2, sum(query.load for query in some) * 0.9)

    def lost(freed: dict[str, float]) -> float:
        return sum(q.weight * (1 - q.quality.worth(max(0.0, 1 - freed.get(q.name, 0.0) / q.load))) for q in some)

    found = lost(deal(some, excess, least=0.0))
    steps = 40
    for shares in itertools.product(range(steps + 1), repeat=len(some) - 1):
        rest = steps - sum(shares)
        other = {q.name: excess * share / steps for q, share in zip(some, (*shares, rest), strict=True)}
        if rest >= 0 and all(other[q.name] <= q.load for q in some):
            assert found <= lost(other) + 0.02


def test_loads_follow_from_rates_costs_and_selectivities() -> None:
    """The load of shared work is divided among its queries."""
    first, rest = Profile(0.001, 0.5), Profile(0.004)
    both = [SimulatedQuery.straight(name, "s", [first, rest], shared=1) for name in "ab"]
    world = World({"s": np.array([0.0])}, both, Everything())
    each = 100 * 0.001 / 2 + 50 * 0.004
    assert loads(world.engine.board, {0: 100.0}) == {0: pytest.approx(each), 1: pytest.approx(each)}


def test_what_is_thinned_takes_less_time_in_simulated_time_too() -> None:
    query = replace(SimulatedQuery.straight("q", "s", [Profile(0.01)]), promises=Promises(overload=("defer", "thin")))
    world = World({"s": np.zeros(1000)}, [query], Everything())
    world.engine.shed(Shed("q", 0.3))
    world.run()
    told = world.engine.snapshot()["queries"]["q"]
    assert world.now == pytest.approx(0.01 * (1000 - told["rows_thinned"]))
    assert told["completeness"] == pytest.approx(told["tuples_out"] / 1000)
    assert 0.25 < told["completeness"] < 0.35


def test_loads_follow_the_graph_whatever_the_numbers_of_operators() -> None:
    # The output of 2 goes to 0, and that of 0 to 1.
    view = RecordView.over({2: (0,), 0: (1,), 1: ()}, {2: (0.1, 0.5), 0: (0.2, 0.5), 1: (0.4, 1.0)})
    assert loads(view, {2: 10.0}) == {0: pytest.approx(10 * 0.1 + 5 * 0.2 + 2.5 * 0.4)}
