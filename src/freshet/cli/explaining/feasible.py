"""The part of ``freshet explain`` on whether the promises can be kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from freshet.app.reports.feasible import blind_to_curves, situation_of
from freshet.model import Promises, UserError, duration_text
from freshet.model.promises.balance import BalanceBound
from freshet.quality.feasibility import ALL, MOST, Situation, Verdict, knee, verdicts
from freshet.quality.feasibility.outlook import percent

_LEAST: Final = 0.005
"""A room below it is none: what takes too long does not depend on rates."""
_TITLES: Final = ("query", "promise", "feasible", "expected", "room")


def feasible_text(
    path: Path | None,
    promises: Mapping[str, Promises],
    queries: Sequence[str],
    load: float,
    as_json: bool,
    reserve: float = 0.0,
    bound: BalanceBound | None = None,
) -> str:
    """The verdicts on queries, as a table or as JSON, from the figures of a report."""
    figures = figures_of(path, "--feasible")
    situation = situation_of(figures, promises, load, reserve, bound)
    if situation is None:
        raise UserError(f"{path}: it has no figures yet: run the application until tuples have come")
    found = [each for each in verdicts(situation) if each.query in queries]
    blind = blind_to_curves(figures, {name: each for name, each in promises.items() if name in queries})
    if as_json:
        told = {"load": situation.load, "room": _whole(situation, found)[0], "note": blind or None}
        return json.dumps(told | {"verdicts": list(map(asdict, found))})
    if not found:
        return "no query has a promise that can be told in advance: a latency curve, a PERIOD, or something to expect"
    return "\n".join([_summary(situation, found), "", *_table(found), *_advice(found), *([blind] if blind else [])])


def figures_of(path: Path | None, option: str) -> Mapping[str, Any]:
    """The figures of a report, for an option that shows them.

    Raises:
        UserError: There is no such report.
    """
    if path is None:
        raise UserError(f"{option} takes its figures from a report, and the application has none")
    try:
        told: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise UserError(
            f"{path} is not there: run the application for a while first, so that costs are known"
        ) from None
    except ValueError:
        raise UserError(f"{path}: this is no JSON") from None
    if not isinstance(told, dict) or not {"queries", "overhead", "workers"} <= told.keys():
        raise UserError(f"{path}: this is no report of a run")
    return told


def _summary(situation: Situation, found: Sequence[Verdict]) -> str:
    room, aim = _whole(situation, found)
    rate = sum(each.rate for each in situation.queries)
    told = (
        f"{_rate(rate)} tuples/s for {len(situation.queries)} queries take {percent(situation.load)} of the "
        f"workers' time, and {duration_text(situation.overhead)} for each step"
    )
    if room is None:
        return told
    if room < _LEAST:
        return f"{told}; no rates are low enough {aim}: what takes too long does not depend on them"
    return f"{told}; {_grows(room)} {aim}"


def _whole(situation: Situation, found: Sequence[Verdict]) -> tuple[float | None, str]:
    """How far all rates may grow, and to what end."""
    rooms = [each.room for each in found if each.room is not None]
    if not any(each.promises.curve is not None for each in situation.queries):
        return min(rooms, default=None), "to keep all promises"
    bounds = [each for each in found if each.query == ALL and each.room is not None]
    room = min([knee(situation), *(each.room for each in bounds if each.room is not None)])
    return room, " and ".join(["for an average QoS of 95 %", *(f"a {each.promise}" for each in bounds)])


def _rate(rate: float) -> str:
    """Tuples per second.

    >>> _rate(150_312.4), _rate(2.468)
    ('150,312', '2.47')
    """
    return f"{rate:,.0f}" if rate >= 100.0 else f"{rate:.3g}"


def _grows(room: float) -> str:
    """How far rates may go.

    >>> _grows(9.44), _grows(0.28), _grows(MOST)
    ('rates may grow 9.4 times', 'rates should be 0.28 times what they are', 'rates may grow 100 times and more')
    """
    if room >= MOST:
        return f"rates may grow {MOST:.0f} times and more"
    return f"rates may grow {room:.2g} times" if room >= 1.0 else f"rates should be {room:.2g} times what they are"


def _table(found: Sequence[Verdict]) -> Iterator[str]:
    rows = [_TITLES, *((each.query, each.promise, each.feasible, each.expected, _room(each)) for each in found)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_TITLES))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _room(verdict: Verdict) -> str:
    if verdict.room is None or (verdict.feasible == "no" and verdict.room < _LEAST):
        return "-"
    return f"{MOST:.0f} x and more" if verdict.room >= MOST else f"{verdict.room:.2f} x"


def _advice(found: Sequence[Verdict]) -> Iterator[str]:
    for each in found:
        if each.reason:
            advice = f": {each.advice}" if each.advice else ""
            yield f"{each.query}: {each.reason}{advice}"
