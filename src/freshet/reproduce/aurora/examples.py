"""The worked examples of CAR ch. 3 and 4: tables whose figures follow from the rules."""

from __future__ import annotations

from typing import Final

from freshet.model import Curve, Promises
from freshet.policies import FixedPriority
from freshet.policies.aurora.bucket_table import Grid, ranges_of
from freshet.policies.aurora.traversal import EXAMPLE, TRAVERSALS, TraversalName, walk
from freshet.reproduce.registry import Measured, claim
from freshet.reproduce.trial import Trial
from freshet.simulation.view import RecordView

SUPERBOX: Final = (4, 5, 3, 2, 6, 1)
"""The tree of CAR Fig. 3.5 in post order."""


def off(name: TraversalName, total: tuple[float, float], latency: tuple[float, float]) -> float:
    """How far total cost and mean latency are from the printed ones, which are (units of p, units of o)."""
    waiting = dict.fromkeys(SUPERBOX, 1.0)
    boxes = {number: box._replace(cost=1.0) for number, box in EXAMPLE.items()}
    found = walk(TRAVERSALS[name](SUPERBOX, boxes), boxes, waiting, 1.0)
    return max(abs(found.seconds - sum(total)), abs(found.latency - sum(latency)))


@claim(
    "aurora.table3.1.min-cost",
    source="CAR §3.3.1.2, Table 3.1",
    published=0.0,
    how="distance from the printed cost (15 p + 6 o) and latency (12.5 p + 6 o), p = o = 1",
    high=0.01,
)
def _(trial: Trial) -> Measured:
    return Measured([off("min-cost", (15, 6), (12.5, 6))])


@claim(
    "aurora.table3.2.min-latency",
    source="CAR §3.3.1.2, Table 3.2",
    published=0.0,
    how="distance from the printed cost (15 p + 15 o) and latency (7.17 p + 7.17 o), p = o = 1",
    high=0.01,
)
def _(trial: Trial) -> Measured:
    return Measured([off("min-latency", (15, 15), (7.17, 7.17))])


@claim(
    "aurora.table4.1.slacks",
    source="CAR §4.2.1, Table 4.1",
    published=0.0,
    how="greatest distance from the printed static slacks: two applications of three boxes of cost 1, deadlines 4, 8",
    high=0.01,
)
def _(trial: Trial) -> Measured:
    view, policy = RecordView(), FixedPriority()
    for name, deadline in (("first", 4.0), ("second", 8.0)):
        view.add(name, [(1.0, 1.0)] * 3, Promises(curve=Curve.deadline(deadline)))
    slacks = [policy.priority(view, operator) for operator in range(6)]
    return Measured([max(abs(ours - printed) for ours, printed in zip(slacks, (1, 2, 3, 5, 6, 7), strict=True))])


TABLE_4_3: Final = ((0, 1.5, 3, 2), (0, 0.5, 4, 1), (0, 3.5, 1, 1), (1, 1.5, 3, 4), (1, 2.5, 3, 3))
"""Application, latency, and the traversal bucket: row and column as printed (bucket 32 is row 3, column 2)."""


@claim(
    "aurora.table4.3.buckets",
    source="CAR §4.4.2, Table 4.3",
    published=0.0,
    how="number of the five printed examples that are put into another bucket; the graphs are lost, so curves are "
    "those of the consistent reading: (0, 5) (1, 5) (3, 3) (4, 0) and (0, 5) (5, 0), bucket width 1",
    high=0.0,
)
def _(trial: Trial) -> Measured:
    curves = [Curve([(0, 5), (1, 5), (3, 3), (4, 0)]), Curve([(0, 5), (5, 0)])]
    grid = Grid(4, 5, 1.0, 1.0)
    wrong = 0
    for application, latency, row, column in TABLE_4_3:
        bucket, _ = ranges_of(curves[application], grid).look_up(latency)
        wrong += divmod(bucket, grid.slacks) != (row - 1, column - 1)
    return Measured([float(wrong)])
