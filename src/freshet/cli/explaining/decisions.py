"""The part of ``freshet explain`` on the optimizer's looks: what it saw, and what it did by which rule."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from freshet.app.remembered.looks import LookRecord, read_looks
from freshet.model import MEASURES, duration_text
from freshet.quality.optimizer import Look, MeasureLook

_TITLES: Final = ("time", "query", "age", "measures", "scores", "strategy", "rule")


def decisions_text(state: Path, queries: Sequence[str], as_json: bool) -> str:
    """The looks at queries that are kept, as a table or as JSON, oldest first."""
    looks = [each for each in read_looks(state) if each.query in queries]
    if as_json:
        return json.dumps([{"query": each.query, **each.look.record()} for each in looks], indent=2)
    if not looks:
        return "the optimizer has not looked at any query: it looks at those with [queries.NAME.expect] while they run"
    return "\n".join(_table(looks))


def _table(looks: Iterable[LookRecord]) -> Iterator[str]:
    rows = [_TITLES, *(_row(each.query, each.look) for each in looks)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_TITLES))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _row(query: str, look: Look) -> tuple[str, ...]:
    when = datetime.fromtimestamp(look.time).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    measures = ", ".join(map(_measure, look.measures))
    scores = " ".join(f"{name} {score:.3g}" for name, score in look.scores.items()) if look.violated else "-"
    return when, query, duration_text(look.age), measures, scores, _strategy(look), _rule(look)


def _measure(each: MeasureLook) -> str:
    """A measure at a look: what was measured, whether that was as expected, its class, and how much it counted.

    >>> _measure(MeasureLook("latency", "must", 1.0, 3.0, 2.0, 2.0, violated=True, weight=1.0))
    'latency 3 s > 2 s (must 1)'
    >>> _measure(MeasureLook("throughput", "must", 1.0, None, 200.0, 200.0, violated=False))
    'throughput - of 200 rows/s (must)'
    """
    known = MEASURES[each.measure]
    text = "-" if each.observed is None else known.text(each.observed)
    sign = (">" if known.better == "low" else "<") if each.violated else "of"
    counted = "" if each.weight is None else f" {each.weight:.3g}"
    return f"{each.measure} {text} {sign} {known.text(each.ahead)} ({each.priority}{counted})"


def _strategy(look: Look) -> str:
    return f"{look.strategy} -> {look.to}" if look.switches else look.strategy


def _rule(look: Look) -> str:
    advice = [] if look.applied or not look.switches else ["not done"]
    predicted = ["by prediction"] if look.predicted else []
    thinned = [f"keeps {100.0 * look.kept:.3g} %"] if look.kept < 1.0 else []
    note = [look.note] if look.note else []
    return ", ".join([look.rule, *advice, *predicted, *thinned, *note])
