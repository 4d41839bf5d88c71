"""Superboxes and their traversals: the worked examples of CAR §3.3, and that every traversal drains its superbox."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.kit import Application

from freshet.model import Decision, Panes, Step, UserError
from freshet.policies import BoxAtATime, Everything, Policy, QueueShare, RowLimit, TimeQuantum, TwoLevel, create
from freshet.policies.aurora.superbox import application_trees, chains, composed, graph_of, intersections, single_boxes
from freshet.policies.aurora.traversal import (
    EXAMPLE,
    TRAVERSALS,
    Box,
    downstream,
    faster,
    memory_rate,
    min_cost,
    min_latency,
    min_memory,
    walk,
)
from freshet.simulation.executor import Profile
from freshet.simulation.view import RecordView
from freshet.simulation.world import SimulatedQuery, World

TREE = (4, 5, 3, 2, 6, 1)
ONE_EACH = dict.fromkeys(TREE, 1.0)
TABLE_3_3 = {
    1: Box((), 2, 0.9), 2: Box((1,), 2, 0.4), 3: Box((2,), 1, 0.5),
    4: Box((2,), 2, 1.0), 5: Box((3,), 3, 0.4), 6: Box((1,), 1, 0.6),
}  # fmt: skip


def in_p_and_o(order: tuple[int, ...]) -> tuple[tuple[float, float], tuple[float, float]]:
    """(total, mean latency), each as multiples of the processing cost p and of the call overhead o."""
    free = {number: box._replace(cost=0.0) for number, box in EXAMPLE.items()}
    by_p, by_o = walk(order, EXAMPLE, ONE_EACH), walk(order, free, ONE_EACH, overhead=1.0)
    return (by_p.seconds, by_o.seconds), (by_p.latency, by_o.latency)


def test_table_3_1() -> None:
    order = min_cost(TREE, EXAMPLE)
    assert order == (4, 5, 3, 2, 6, 1)
    total, latency = in_p_and_o(order)
    assert total == (15.0, 6.0)
    assert latency == (12.5, 6.0)


def test_table_3_2() -> None:
    order = min_latency(TREE, EXAMPLE)
    assert order == (1, 2, 1, 6, 1, 4, 2, 1, 3, 2, 1, 5, 3, 2, 1)
    total, latency = in_p_and_o(order)
    assert total == (15.0, 15.0)
    assert latency == pytest.approx((43 / 6, 43 / 6))


def test_the_cross_over_of_the_example_is_at_0_22() -> None:
    (p_cheap, o_cheap), (p_fast, o_fast) = (in_p_and_o(order(TREE, EXAMPLE))[1] for order in (min_cost, min_latency))
    ratio = (o_fast - o_cheap) / (p_cheap - p_fast)
    assert round(ratio, 2) == 0.22
    for p_over_o, name in ((ratio - 1e-6, "min-cost"), (ratio + 1e-6, "min-latency")):
        assert faster(TREE, EXAMPLE, ONE_EACH, overhead=1.0 / p_over_o) == name


def test_table_3_3_and_a_min_memory_traversal_that_drains() -> None:
    rates = {number: round(memory_rate(box), 3) for number, box in TABLE_3_3.items()}
    assert rates == {1: 0.05, 2: 0.3, 3: 0.5, 4: 0.0, 5: 0.2, 6: 0.4}
    assert min_memory(TREE, TABLE_3_3) == (3, 6, 2, 5, 3, 2, 1, 4, 2, 1)


@st.composite
def trees(draw: st.DrawFn) -> dict[int, Box]:
    count = draw(st.integers(1, 12))
    boxes = {}
    for number in range(count):
        after = () if number == 0 else (draw(st.integers(0, number - 1)),)
        cost = draw(st.sampled_from([0.0, 1e-9, 1e-6]) | st.floats(0.1, 4.0))
        selectivity = draw(st.sampled_from([0.0, 1.001]) | st.floats(0.1, 3.0))
        boxes[number] = Box(after, cost, selectivity, draw(st.sampled_from([1.0, 100.0])))
    return boxes


def test_min_memory_ends_where_a_box_makes_more_than_it_takes() -> None:
    dear = Box(cost=1e-6, selectivity=1.001, size=100)
    assert min_memory((0,), {0: dear}) == (0,)
    # Memory that grows is put off: what frees memory is called first, however little.
    assert min_memory((0, 1), {0: Box((1,), 1e-6, 1.001, 100), 1: Box((), 1.0, 0.5)}) == (1, 0, 1)


@given(trees(), st.data())
def test_every_traversal_drains_the_superbox(boxes: dict[int, Box], data: st.DataObject) -> None:
    graph = {number: box.after for number, box in boxes.items()}
    (superbox,) = application_trees(graph)
    waiting = {number: data.draw(st.integers(0, 5)) for number in boxes}
    walks = [walk(order(superbox, boxes), boxes, waiting, 0.1) for order in TRAVERSALS.values()]
    for each in walks:
        assert each.memory[-1][1] == 0.0
        assert each.outputs == pytest.approx(walks[0].outputs)
        assert each.processing == pytest.approx(walks[0].processing)
        assert each.calls >= walks[0].calls
    # Each call brings its tuples nearer to the output: the bound that min_memory's end is proved by.
    assert len(min_memory(superbox, boxes)) <= sum(len(downstream(boxes, box)) for box in superbox)


@given(trees())
def test_without_overhead_min_latency_is_no_slower_where_all_costs_are_equal(boxes: dict[int, Box]) -> None:
    equal = {number: Box(box.after) for number, box in boxes.items()}
    (superbox,) = application_trees({number: box.after for number, box in equal.items()})
    ones = dict.fromkeys(superbox, 1.0)
    fast, cheap = (walk(order(superbox, equal), equal, ones) for order in (min_latency, min_cost))
    assert fast.latency <= cheap.latency + 1e-9


def test_downstream() -> None:
    assert downstream(EXAMPLE, 3) == [3, 2, 1]


# Selections

FIG_6_4 = {1: (3, 4), 2: (4, 5), 3: (), 4: (), 5: ()}
"""Two shared boxes, three applications."""


def test_overlapping_application_trees_share_boxes_and_intersections_do_not() -> None:
    assert application_trees(FIG_6_4) == [(1, 3), (1, 2, 4), (2, 5)]
    assert intersections(FIG_6_4) == [(1,), (2,), (3,), (4,), (5,)]
    shared = {0: (1,), 1: (2,), 2: (3, 4), 3: (5,), 4: (), 5: ()}
    assert intersections(shared) == [(0, 1, 2), (4,), (3, 5)]


@given(trees())
def test_selections_partition_a_tree(boxes: dict[int, Box]) -> None:
    graph = {number: box.after for number, box in boxes.items()}
    for select in (application_trees, intersections, chains, single_boxes):
        assert sorted(number for superbox in select(graph, ()) for number in superbox) == sorted(graph)


def test_windowed_boxes_end_a_superbox() -> None:
    graph = {2: (4,), 4: (6,), 6: (8,), 8: ()}
    assert application_trees(graph, ends={4}) == [(2, 4), (6, 8)]
    assert intersections(graph, ends={4}) == [(2, 4), (6, 8)]
    assert chains(graph, ends={4}) == [(2, 4), (6, 8)]


def test_the_latencies_of_section_6_3_1() -> None:
    """A window of 5 tuples that costs 1 each, then two boxes of 0.5: 215.25 as one superbox, 163 as two."""
    boxes = {4: Box((6,), 1.0, 0.2), 6: Box((8,), 0.5), 8: Box((), 0.5)}
    together = walk((4, 6, 8), boxes, {4: 100})
    assert 100 + together.latency == pytest.approx(215.25)
    now, left = 100.0, []
    for _ in range(20):
        window = walk((4,), boxes, {4: 5})
        behind = walk((6, 8), boxes, {6: 5 * boxes[4].selectivity})
        left.append(now + window.seconds + behind.latency)
        now += window.seconds + behind.seconds
    assert sum(left) / 20 == pytest.approx(163)


# The policy

TREES = [SimulatedQuery.tree(f"q{number}", [Profile(0.1)] * 6, (3, 2, 3, 5, 5, None)) for number in range(3)]
ARRIVALS = {stream: np.linspace(0.0, 2.0, 9) for tree in TREES for stream in tree.streams}


def counting(name: str) -> TwoLevel:
    policy = create(name)
    assert isinstance(policy, TwoLevel)
    return policy


@pytest.mark.parametrize("name", ["aaat", "aaat-min-cost", "aaat-min-latency", "aaat-min-memory", "baat", "taat"])
def test_every_tuple_of_a_tree_leaves_once(name: str) -> None:
    world = World(ARRIVALS, TREES, counting(name), call=0.01, departs="box")
    world.run()
    for tree in TREES:
        came = sorted(time for stream in tree.streams for time in ARRIVALS[stream])
        assert sorted(world.departed()[tree.name][0].tolist()) == came


def test_min_cost_calls_each_box_once_and_boxes_need_not() -> None:
    calls = {}
    for policy in (TwoLevel(), TwoLevel(traversal="min-latency")):
        world = World({stream: np.zeros(2) for stream in TREES[0].streams}, TREES[:1], policy)
        world.run()
        calls[policy.traversal] = world.work.calls
    assert calls == {"min-cost": 6, "min-latency": 9}


@pytest.mark.parametrize("call", [0.0, 0.1, 100.0])
def test_auto_is_as_fast_as_the_faster_one(call: float) -> None:
    latencies = {}
    for name in ("aaat", "aaat-min-cost", "aaat-min-latency"):
        arrivals = {stream: np.zeros(3) for stream in TREES[0].streams}
        world = World(arrivals, TREES[:1], counting(name), call=call, departs="box")
        world.run()
        latencies[name] = world.outcome().response
    assert latencies["aaat"] == min(latencies.values())


def on_engine(policy: Policy) -> tuple[dict[str, list[int]], World]:
    queries = [
        SimulatedQuery.straight(f"q{n}", "s", (Profile(0.1, 0.5), Profile(0.1, 0.8), Profile(0.1))) for n in range(3)
    ]
    world = World({"s": np.arange(30) / 10}, queries, policy, overhead=0.05)
    world.run()
    rows = {}
    for query in queries:
        world.log.start_reader("test", query.name, "earliest")
        rows[query.name] = world.log.tuples(world.log.train(query.name, 0, world.log.end(query.name)))[1].tolist()
    return rows, world


@settings(max_examples=8, deadline=None)
@given(st.sampled_from(["aaat", "aaat-min-cost", "aaat-min-latency", "aaat-min-memory", "baat", "taat"]))
def test_same_answers_on_the_engine(name: str) -> None:
    assert on_engine(create(name))[0] == on_engine(Everything())[0]


def test_a_superbox_costs_less_than_boxes_on_the_engine() -> None:
    fused, boxes = on_engine(create("aaat-min-cost"))[1], on_engine(create("baat"))[1]
    units = [world.engine.snapshot()["workers"]["units"] for world in (fused, boxes)]
    assert units[0] < units[1] / 2
    assert fused.engine.clock.now() < boxes.engine.clock.now()
    # Only a box at a time makes tuples wait between operators.
    assert "q0.project" in boxes.log._streams
    assert fused.log.end("q0.project") == 0 < boxes.log.end("q0.project")


def test_trains_by_share_and_by_quantum() -> None:
    view = RecordView()
    (first, _) = view.add("q", [(2.0, 0.5), (4.0, 1.0)])
    view.operators[first].pending = 9
    view.ready[first] = None
    assert BoxAtATime(trains=QueueShare(0.2)).decide(view).steps[0].rows == 2
    assert BoxAtATime(trains=TimeQuantum(8.0)).decide(view).steps[0].rows == 2
    assert BoxAtATime(trains=TimeQuantum(8.0, to_output=False)).decide(view).steps[0].rows == 4
    view.operators[first].pending = 0
    assert QueueShare(0.2).rows(view, first) is None  # all that comes, not one tuple of it
    for wrong in (lambda: QueueShare(0.0), lambda: TimeQuantum(0.0), lambda: TwoLevel("trees")):
        with pytest.raises(UserError):
            wrong()


def test_a_train_has_the_size_that_suits_its_own_queue() -> None:
    view = RecordView()
    first, second, _ = view.add("q", [(1.0, 1.0), (2.0, 1.0), (2.0, 1.0)])
    view.operators[first].pending, view.operators[second].pending = 100, 10
    view.ready.update({first: None, second: None})
    # The engine takes the train where tuples wait last on the path: at the second box.
    assert TwoLevel(trains=QueueShare(0.5)).decide(view) == Decision.run(Step((0, 1, 2), 5))
    assert TwoLevel(trains=TimeQuantum(20.0)).decide(view) == Decision.run(Step((0, 1, 2), 5))
    by_box = TwoLevel(traversal="min-latency", trains=QueueShare(0.5)).decide(view)
    # Half of what waits there is left for the second step, which must take it before what comes after it.
    assert by_box == Decision.run(Step((1, 2), 5), Step((0, 1, 2), 5))


def test_the_trains_of_a_tree_are_sized_box_by_box() -> None:
    """Three inputs of a union; trains of one size share a step."""
    view = RecordView.over({0: (3,), 1: (3,), 2: (3,), 3: ()})
    wait(view, {0: 40, 1: 40, 2: 4})
    assert TwoLevel(trains=QueueShare(0.5)).decide(view) == Decision.run(Step((0, 1), 20), Step((2, 3), 2))
    assert TwoLevel(trains=RowLimit(7)).decide(view) == Decision.run(Step((0, 1, 2, 3), 7))


def wait(view: RecordView, rows: Mapping[int, int]) -> None:
    for number, count in rows.items():
        view.operators[number].pending, view.operators[number].bytes_waiting = count, 100 * count
        view.ready[number] = None


def steps_of(policy: Policy, view: RecordView) -> list[tuple[int, ...]]:
    return [step.nodes for step in policy.decide(view).steps]


# A shared beginning and two queries: what differs only where queries share operators

SHARED = {0: (1,), 1: (2, 3), 2: (), 3: ()}
DEAR = {0: (1e-6, 1.0), 1: (1e-3, 0.2), 2: (2e-3, 1.0), 3: (4e-3, 1.0)}


def test_selections_differ_where_queries_share() -> None:
    graph = graph_of(RecordView.over(SHARED))
    assert graph == SHARED
    assert application_trees(graph) == [(0, 1, 2), (0, 1, 3)]
    assert composed(application_trees(graph)) == [(0, 1, 2, 3)]
    assert intersections(graph) == [(0, 1), (2,), (3,)]
    assert chains(graph) == [(0, 1), (2,), (3,)]
    assert single_boxes(graph) == [(0,), (1,), (2,), (3,)]


def test_selections_differ_where_a_join_has_two_inputs() -> None:
    graph = graph_of(RecordView.over({0: (2,), 1: (2,), 2: (3,), 3: ()}))
    assert application_trees(graph) == intersections(graph) == [(0, 1, 2, 3)]
    assert sorted(chains(graph)) == [(0,), (1,), (2, 3)]


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("aaat-min-cost", [(0, 1, 2, 3)]),
        # The first answer leaves before the second query begins; the dear beginning runs once.
        ("aaat-min-latency", [(0, 1, 2), (3,)]),
        # What came in is free as soon as the dear filter is through with it.
        ("aaat-min-memory", [(0, 1), (2,), (3,)]),
        ("baat", [(0,)]),
    ],
)
def test_traversals_are_different_plans(name: str, steps: list[tuple[int, ...]]) -> None:
    view = RecordView.over(SHARED, DEAR)
    view.seconds_per_step = 0.02
    wait(view, {0: 1000})
    assert steps_of(create(name), view) == steps


def test_the_cheapest_output_comes_first_whatever_its_number() -> None:
    view = RecordView.over(SHARED, {**DEAR, 2: (8e-3, 1.0)})
    wait(view, {0: 1000})
    assert steps_of(create("aaat-min-latency"), view) == [(0, 1, 3), (2,)]


def test_min_latency_follows_learned_costs() -> None:
    view, policy = RecordView.over(SHARED, dict.fromkeys(SHARED, (0.0, 1.0))), create("aaat-min-latency")
    wait(view, {0: 1000})
    assert steps_of(policy, view) == [(0, 1, 2), (3,)]
    for number, (cost, _) in {**DEAR, 2: (8e-3, 1.0)}.items():
        view.operators[number].cost = cost
    policy.completed(view, (0, 1, 2))
    assert steps_of(policy, view) == [(0, 1, 3), (2,)]


def test_min_memory_makes_no_step_that_frees_nothing() -> None:
    view = RecordView.over(SHARED, DEAR)
    wait(view, {0: 1000})
    view.seconds_per_step = 10.0
    assert steps_of(create("aaat-min-memory"), view) == [(0, 1, 2), (3,)]
    straight = RecordView.over({0: (1,), 1: (2,), 2: ()})
    wait(straight, {0: 1000})
    assert steps_of(create("aaat-min-memory"), straight) == [(0, 1, 2)]


def test_superboxes_follow_learned_costs_and_do_not_flutter() -> None:
    view, policy = RecordView(), TwoLevel(high_cost=1e-3)
    path = view.add("q", [(1e-6, 1.0)] * 3)
    view.operators[0].pending = 5
    view.ready[0] = None

    def learn(cost: float) -> list[tuple[int, ...]]:
        view.operators[1].cost = cost
        policy.completed(view, path)
        return steps_of(policy, view)

    assert steps_of(policy, view) == [(0, 1, 2)]
    assert learn(2e-3) == [(0, 1)]
    assert learn(0.9e-3) == [(0, 1)]  # not clearly cheap yet
    assert learn(0.7e-3) == [(0, 1, 2)]
    assert learn(0.9e-3) == [(0, 1, 2)]  # and not dear either
    view.add("later", [(1e-6, 1.0)])
    assert learn(1e-3) == [(0, 1)]


def test_a_cost_that_is_learned_while_running_ends_a_superbox() -> None:
    queries = [SimulatedQuery.straight("q", "s", (Profile(0.1), Profile(0.001), Profile(0.001)))]
    ends = {}
    for name, policy in (("by cost", TwoLevel(high_cost=0.05)), ("never", TwoLevel())):
        world = World({"s": np.arange(20) / 2}, queries, policy, known=False)
        world.run()
        ends[name] = [world.log.end(stream) for stream in ("q.filter_2", "q.project", "q")]
    assert ends["never"] == [0, 0, 20]
    # The first train runs as one, before anything is known; the others stop behind the dear operator.
    waited, fused, out = ends["by cost"]
    assert waited > 0
    assert (fused, out) == (0, 20)


def test_a_dear_window_ends_a_superbox() -> None:
    """Real kernels: for trains of three tuples a window takes more than 2 us each on any machine."""
    text = "SELECT k, COUNT(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k HAVING COUNT(*) > 0"
    answers = []
    for policy in (TwoLevel(high_cost=2e-6), Everything()):
        application = Application({"q": text}, policy, cost=None)
        for second in range(0, 60, 5):
            application.append("s", [(float(second + place), "xyz"[place], 1) for place in range(3)])
            application.run()
        application.heartbeat("s", 1000.0)
        application.run()
        answers.append(application.answers("q"))
        network = application.engine.board.network
        panes = [node.number for node in network.nodes if isinstance(node.operator, Panes)]
        behind = [edge.stream for number in panes for edge in network.readers(number)]
        assert [application.queues.end(stream) > 0 for stream in behind] == [isinstance(policy, TwoLevel)] * len(behind)
        assert behind
        application.close()
    assert answers[0] == answers[1]
