"""The part of ``freshet explain`` on joins by ordered keys: how the streams are ordered, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from freshet.app.declared.join_memory import budgets_of
from freshet.app.declared.spec import StreamSpec
from freshet.engine.resting import BEARABLE, TIMES_READ
from freshet.log import LogReader
from freshet.model import Join, Query, UserError
from freshet.model.join_buffer import is_sorted
from freshet.model.key_joins import KeyJoins, key_joins
from freshet.model.units import bytes_text, duration_text
from freshet.quality.disorder import Disorder, predicted_rows
from freshet.quality.disorder.budget import NO_MARK, NO_TRAIL, Buffering, KnownInput, Trail, held_bytes

_WAYS: Final = {
    "ram": Buffering(),
    "log": Buffering(rests=True),
    "sorted": Buffering(sorted=True),
    "hybrid": Buffering(rests=True, sorted=True),
}
_WHY: Final = {
    "ram": "all tuples wait in memory",
    "log": "tuples of a leading stream wait in its log, and no row is delayed by it",
    "sorted": "rows come in the order of the key, when the marks have passed it",
    "hybrid": "rows come in the order of the key, and tuples of a leading stream wait in its log until then",
}


def explain_keys(query: Query, streams: Mapping[str, StreamSpec], state: Path) -> Iterator[str]:
    """Yields lines for each join without windows: the order of its inputs, and how many rows it must remember."""
    joins = key_joins(query.graph)
    if not joins:
        return
    known, width, trails = _known(joins, state)
    for name, ports in joins.items():
        yield f"join {name} goes by ordered keys, without windows: a tuple goes when the marks of the others pass it"
        operator = query.graph.operators[name]
        assert isinstance(operator, Join)
        for place, port in enumerate(ports):
            marks = (at for at in range(len(ports)) if at != place or operator.stays(place))
            others = [known[other] for at in marks for other, _ in ports[at]]
            for stream, _ in port:
                order = streams[stream].stream.order
                assert order is not None
                yield f"  {stream} is {order.text()}"
                if len(port) == 1 and known[stream].heights.rows:
                    yield f"    {_told(known[stream], others, order.in_order, width.get(stream, 0.0))}"
    yield from _bounds(query, streams, known, trails)


def _bounds(
    query: Query, streams: Mapping[str, StreamSpec], known: Mapping[str, Disorder], trails: Mapping[str, Trail]
) -> Iterator[str]:
    schemas = {name: spec.stream.schema for name, spec in streams.items()}
    bounded = {budget.join for budget in budgets_of(query, schemas, 0)}
    for budget in budgets_of(query, schemas, query.join_memory or 0, unbounded=True):
        inputs = [
            KnownInput(each.heights, NO_MARK if each.mark is None else each.mark, cost, trails[stream])
            for stream, each, cost in zip(
                budget.streams, (known[stream] for stream in budget.streams), budget.costs, strict=True
            )
        ]
        ways = {name: how._replace(left=budget.left) for name, how in _WAYS.items()}
        needs = {name: bytes_text(held_bytes(inputs, how=how)) for name, how in ways.items()}
        told = ", ".join(f"{name} {need}" for name, need in needs.items())
        why = _why(query, budget.join in bounded)
        yield f"  {budget.join} buffers as join_buffer = {query.join_buffer} says: {why}"
        yield f"    now it would need at most: {told}"
        if budget.join in bounded:
            size = "its part of the application's" if query.join_memory is None else bytes_text(budget.size)
            needed = held_bytes(inputs, how=Buffering(budget.rests, budget.sorted, budget.left))
            yield (
                f"  {budget.join} may remember {size} (join_memory); now it needs at most {bytes_text(needed)}. Where "
                "that is not enough, the log raises its marks, and later tuples at or below them are let go"
            )


def _why(query: Query, bounded: bool) -> str:
    """Why the join buffers as it does, with what the query tolerates."""
    tolerated = query.promises.tolerated
    bears = "" if tolerated == math.inf else duration_text(tolerated)
    if query.join_buffer != "auto":
        late = f'. It may come later than the {bears} that the query tolerates: "auto" never does this'
        return _WHY[query.join_buffer] + (late if bears and is_sorted(query.join_buffer) else "")
    if bounded:
        rests = "tuples of a leading stream wait in its log, since what its memory cannot hold would be let go"
    else:
        rests = f"tuples of a leading stream wait in its log if the lead lasts {TIMES_READ:g} times as long as a step"
        if bears:
            rests += f", as many as are worked off in {BEARABLE:.0%} of the {bears} that the query tolerates"
    return f"{rests}. Rows do not wait for their order: that would delay them, and save nothing"


def _told(own: Disorder, others: list[Disorder], share: float, width: float) -> str:
    rows, measured = predicted_rows(own, others), own.measured(share)
    assert measured is not None
    mark = "no mark yet" if own.mark is None else f"mark {own.mark}"
    grows = "; it grows with the stream: no memory is enough, choose another key" if own.grows(share) else ""
    return (
        f"{mark} after {own.heights.rows:,} tuples; {share:g} of them come at most {measured[0]:,} tuples out of order"
        f"{grows}; the join needs at most {rows:,} of them now, about {rows * width / 1e6:.2g} MB"
    )


def _known(joins: KeyJoins, state: Path) -> tuple[dict[str, Disorder], dict[str, float], dict[str, Trail]]:
    """What earlier runs have learned of the order of the streams, the bytes of their tuples, and where their marks had
    come how far."""
    known = {stream: Disorder() for ports in joins.values() for port in ports for stream, _ in port}
    width: dict[str, float] = {}
    trails = dict.fromkeys(known, NO_TRAIL)
    try:
        with LogReader(state) as reader:
            for stream in known.keys() & set(reader.streams()):
                packed, first, end = reader.disorder(stream), reader.oldest(stream), reader.end(stream)
                known[stream] = Disorder() if packed is None else Disorder.unpacked(packed)
                entries = reader.key_marks(stream)
                rows = [known[stream].heights.rows - end + at for at, _ in entries]
                trails[stream] = Trail.of(rows, [key for _, key in entries])
                width[stream] = reader.bytes(stream, first, end) / (end - first) if end > first else 0.0
    except UserError:
        pass  # it has not run yet
    return known, width, trails
