"""The part of the report on joins by ordered keys: what they hold, beside what the order of their streams predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from freshet.app.reports.types import JoinInputReport, JoinsReport, LetGoReport
from freshet.engine import Engine
from freshet.log import Log, LogReader
from freshet.model import Join, Stream
from freshet.model.key_joins import key_joins
from freshet.quality.disorder import Disorder, predicted_rows, rows_ahead

if TYPE_CHECKING:
    from freshet.engine.states import FoldState

_LEVELS: Final = 12
"""Number of levels that are told."""
Port = Sequence[tuple[str, str]]
"""The streams that lead to a port, each with its ordered key."""


def joins_of(engine: Engine, log: Log, streams: Mapping[str, Stream]) -> dict[str, JoinsReport]:
    """What the joins by ordered keys of each query hold, input by input. Only on the engine's thread."""
    found: dict[str, JoinsReport] = {}
    known: dict[str, Disorder] = {}
    for fold in engine.board.folds():
        for query in (engine.board.queries[number] for number in fold.queries):
            ports = key_joins(query.query.graph).get(fold.node.name)
            if ports is not None:
                _learn(known, log, ports)
                held = engine.time.rows_by_port(fold)
                told = found.setdefault(query.name, {"inputs": [], "memory": [], "let_go": []})
                told["inputs"] += _inputs(fold, ports, held, log, known, streams, engine)
                name = fold.node.name
                if (budget := log.budget(name)) is not None:
                    told["memory"].append(
                        {"join": name, "limit": budget.size, "bytes": log.remembered_bytes(name) or 0}
                    )
                    told["let_go"] += let_go(log, name, budget.concerned)
    return found


def let_go(log: Log | LogReader, join: str, streams: Sequence[str]) -> list[LetGoReport]:
    """What a join with a bound let go, level by level, and how complete its answers are because of that. Answers need
    a tuple of each input, so their share is the product of the shares of tuples that were kept."""
    levels = {stream: log.levels(stream, join) for stream in streams}
    first = max(streams, key=lambda stream: len(levels[stream]))
    found: list[LetGoReport] = []
    keys = [key for _, key in levels[first]]
    for place, key in list(enumerate(keys))[-_LEVELS:]:
        rows = gone = 0
        complete, since = 1.0, []
        for stream in streams:
            begin, end = _from(levels[stream], key, log.end(stream)), log.end(stream)
            if place + 1 < len(keys):
                end = _from(levels[stream], keys[place + 1], end)
            came, lost = end - begin, len(log.let_go(stream, begin, end, join))
            rows, gone = rows + came, gone + lost
            complete *= 1.0 - lost / came if came else 1.0
            if came and begin >= log.oldest(stream):
                since.append(log.arrival(stream, begin))
        found.append(
            {
                "join": join,
                "since": datetime.fromtimestamp(min(since) / 1e6, UTC).isoformat() if since else None,
                "above": keys[place - 1] if place else None,
                "upto": key,
                "rows": rows,
                "let_go": gone,
                "completeness": complete,
            }
        )
    return found


def _from(levels: Sequence[tuple[int, int]], key: int, end: int) -> int:
    """The offset from which on a level, or a higher one, holds."""
    return next((at for at, level in levels if level >= key), end)


def _predicted(
    engine: Engine, fold: FoldState, place: int, own: Sequence[Disorder], others: Sequence[Disorder], rests: int
) -> int:
    """Number of rows of an input above the marks of the others. Of a join it is an estimate: as many as it makes of the
    tuples of its own inputs that are above them."""
    operator = fold.node.operator
    marks = [*others, *own] if isinstance(operator, Join) and operator.stays(place) else others
    rows = sum(predicted_rows(each, marks) for each in own)
    made, source = 1.0, fold.edges[place].edge.source
    while len(own) > 1 and source is not None:
        above = engine.board.operators[source]
        made *= above.statistics.selectivity
        source = above.edges[0].edge.source if len(above.edges) == 1 else None
    return max(0, round(rows * made) - rests)


def _learn(known: dict[str, Disorder], log: Log, ports: Sequence[Port]) -> None:
    for stream in (stream for port in ports for stream, _ in port if stream not in known):
        packed = log.disorder(stream)
        known[stream] = Disorder() if packed is None else Disorder.unpacked(packed)


def _inputs(
    fold: FoldState,
    ports: Sequence[Port],
    held: Sequence[int],
    log: Log,
    known: Mapping[str, Disorder],
    streams: Mapping[str, Stream],
    engine: Engine,
) -> list[JoinInputReport]:
    counts, buffer = log.meters().streams, engine.board.queries[fold.queries[0]].query.join_buffer
    edges = engine.resting.ports(fold)
    told: list[JoinInputReport] = []
    for place, port in enumerate(ports):
        others = [known[stream] for at, each in enumerate(ports) if at != place for stream, _ in each]
        own = [known[stream] for stream, _ in port]
        order = streams[port[0][0]].order
        assert order is not None
        rests = engine.resting.rows(edges[place]) if edges else 0
        measured = own[0].measured(order.in_order) if len(own) == 1 else None
        told.append(
            {
                "join": fold.node.name,
                "streams": [stream for stream, _ in port],
                "ordered_by": port[0][1],
                "mark": min((each.mark for each in own if each.mark is not None), default=None),
                "rows_held": held[place],
                "rows_predicted": _predicted(engine, fold, place, own, others, rests),
                "rows_resting": rests,
                "buffer": buffer,
                "lag": rows_ahead(own[0], others) if len(own) == 1 else None,
                "disorder": None if measured is None else measured[0],
                "disorder_distance": None if measured is None else measured[1],
                "grows": any(each.grows(order.in_order) for each in own),
                "past": sum(counts[stream].past for stream, _ in port),
            }
        )
    return told
