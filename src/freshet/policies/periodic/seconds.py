"""How long an instance is expected to take."""

from __future__ import annotations

from collections import Counter

from freshet.model import InstanceView, View


def expected_seconds(view: View, instance: InstanceView) -> float:
    """Seconds that the operators of an instance take for what it sees, by their present costs and selectivities;
    without the overhead of its step.

    >>> from freshet.simulation.view import InstanceRecord, RecordView
    >>> view = RecordView()
    >>> _ = view.add("q", [(0.01, 0.5), (0.02, 1.0)])
    >>> round(expected_seconds(view, InstanceRecord(("q", 0), 0, 0.0, 1.0, rows=100)), 3)
    2.0
    """
    rows: Counter[int] = Counter()
    for each in instance.inputs:
        rows[each.node] += each.rows
    out: dict[int, float] = {}
    seconds = 0.0
    for number in view.queries[instance.query].operators:
        operator = view.operators[number]
        entered = rows[number] + sum(out[source] for source in operator.inputs)
        seconds += operator.cost * entered
        out[number] = operator.selectivity * entered
    return seconds
