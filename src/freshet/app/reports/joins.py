"""The part of the report on joins by ordered keys: what they hold, beside what the order of their streams predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from freshet.app.reports.types import JoinInputReport, JoinsReport
from freshet.engine import Engine
from freshet.log import Log
from freshet.model import Stream
from freshet.model.key_joins import key_joins
from freshet.quality.disorder import Disorder, predicted_rows, rows_ahead

if TYPE_CHECKING:
    from freshet.engine.states import FoldState

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
                told = found.setdefault(query.name, {"inputs": []})
                told["inputs"] += _inputs(fold, ports, held, log, known, streams)
    return found


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
) -> list[JoinInputReport]:
    counts = log.meters().streams
    told: list[JoinInputReport] = []
    for place, port in enumerate(ports):
        others = [known[stream] for at, each in enumerate(ports) if at != place for stream, _ in each]
        own = [known[stream] for stream, _ in port]
        order = streams[port[0][0]].order
        assert order is not None
        measured = own[0].measured(order.in_order) if len(own) == 1 else None
        told.append(
            {
                "join": fold.node.name,
                "streams": [stream for stream, _ in port],
                "ordered_by": port[0][1],
                "mark": min((each.mark for each in own if each.mark is not None), default=None),
                "rows_held": held[place],
                "rows_predicted": predicted_rows(own[0], others) if len(own) == 1 else None,
                "lag": rows_ahead(own[0], others) if len(own) == 1 else None,
                "disorder": None if measured is None else measured[0],
                "disorder_distance": None if measured is None else measured[1],
                "grows": any(each.grows(order.in_order) for each in own),
                "past": sum(counts[stream].past for stream, _ in port),
            }
        )
    return told
