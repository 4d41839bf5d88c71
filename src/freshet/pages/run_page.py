"""The page of a run: freshness, latency, QoS and queues of each query over time, with the decisions beside them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from importlib.resources import files
from typing import Final

from freshet.model import Curve, duration_text
from freshet.pages.chart import ChartLine, ChartSize, chart
from freshet.pages.overview import together
from freshet.quality.history.record import HistoryRecord, QueryCourse, Readings

LARGE: Final = ChartSize(400, 96)
SMALL: Final = ChartSize(210, 46)
_NEAR: Final = 4.0
"""A promise is shown if it is at most this many times as long as the greatest latency."""
_MANY: Final = 12
"""Number of queries from which on there is a field to find some of them."""


@dataclass(frozen=True, slots=True)
class ShownMeasure:
    """A measure of queries as the page shows it: its title, its column, a second line, its style, its unit."""

    title: str
    column: str
    second: str | None
    style: str
    unit: str


MEASURES: Final = (
    ShownMeasure("freshness", "freshness", None, "fresh", "%"),
    ShownMeasure("age of answers, p95", "latency_s", "p95_s", "latency", "s"),
    ShownMeasure("QoS, running average", "qos", "running_qos", "qos", "%"),
    ShownMeasure("waiting tuples", "waiting", None, "waiting", ""),
)


def run_page(record: HistoryRecord) -> str:
    """One file of HTML with everything in it: no network, no other file. It can be printed, and needs its script only
    for the line under the pointer.

    >>> from freshet.quality.history import record_of
    >>> page = run_page(record_of([], [], {}, app="night <1>", policy="fcfs", workers=1, real=False))
    >>> "<h1>night &lt;1&gt;</h1>" in page, "http" in page
    (True, False)
    """
    every = together(record)
    parts = [
        _header(record),
        '<div class="columns"><main>',
        *_tiles(record, every),
        *_promises(record),
        '<h2>All queries</h2><div class="all">',
        *_overview(record, every),
        "</div>",
        *_queries(record),
        "</main><aside><h2>Decisions</h2><ol>",
        *_decisions(record),
        "</ol></aside></div>",
    ]
    return _document(record, every, "\n".join(parts))


def _document(record: HistoryRecord, every: QueryCourse, body: str) -> str:
    shown = {key: record[key] for key in ("times", "queries", "machine")} | {"all": every}
    data = json.dumps(shown, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    style, script = (_file(f"run_page.{kind}") for kind in ("css", "js"))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(record["app"])}</title>\n'
        f"<style>\n{style}</style></head>\n<body>\n{body}\n"
        f'<script type="application/json" id="run">{data}</script>\n<script>\n{script}</script>\n</body></html>\n'
    )


def _file(name: str) -> str:
    return (files("freshet.pages") / name).read_text(encoding="utf-8")


def _header(record: HistoryRecord) -> str:
    length = duration_text(record["times"][-1]) if record["times"] else "0 s"
    began = datetime.fromtimestamp(record["start"]).astimezone() if record["real"] else None
    when = "simulated time" if began is None else f"began {began:%Y-%m-%d %H:%M:%S}"
    told = [f"policy {record['policy']}", f"{len(record['queries'])} queries", length, when]
    return f"<header><h1>{escape(record['app'])}</h1><span class='soft'>{escape(' · '.join(told))}</span></header>"


def _tiles(record: HistoryRecord, every: QueryCourse) -> Iterator[str]:
    times = record["times"]
    rated = [each for each in (_last(query["running_qos"]) for query in record["queries"].values()) if each is not None]
    figures = [
        ("freshness", _percent(_over_time(times, every["freshness"]))),
        ("mean age of answers", _seconds(mean_age(times, every))),
        *([("QoS", _percent(math.fsum(rated) / len(rated)))] if rated else []),
        ("most waiting tuples", f"{max((each for each in every['waiting'] if each is not None), default=0):,.0f}"),
        ("workers busy", _percent(_over_time(times, record["machine"]["busy"]))),
        ("time for deciding", _percent(_over_time(times, record["machine"]["deciding"]))),
    ]
    tiles = "".join(f"<div><b>{value}</b><span class='soft'>{name}</span></div>" for name, value in figures)
    yield f'<div class="tiles">{tiles}</div>'


def _promises(record: HistoryRecord) -> Iterator[str]:
    """Whether promises can be kept, as the run said last."""
    if (told := record.get("feasible")) is not None:
        yield f"<p>{escape(told)}</p>"


def _overview(record: HistoryRecord, every: QueryCourse) -> Iterator[str]:
    for measure in _shown(record):
        yield _cell(record, measure, every, LARGE, "all", "")
    busy = ShownMeasure("busy workers, deciding", "busy", "deciding", "busy", "%")
    yield _machine(record, busy)
    yield _machine(record, ShownMeasure("steps a second", "units_per_s", None, "busy", ""))


def _shown(record: HistoryRecord) -> list[ShownMeasure]:
    rated = any(value is not None for query in record["queries"].values() for value in query["qos"])
    return [each for each in MEASURES if each.column != "qos" or rated]


def _queries(record: HistoryRecord) -> Iterator[str]:
    measures = _shown(record)
    field = '<input id="filter" placeholder="find a query">' if len(record["queries"]) >= _MANY else ""
    heads = "".join(f"<th>{each.title}</th>" for each in measures)
    yield f'<h2>Each query{field}</h2><div class="rows"><table><tr><th></th>{heads}</tr>'
    for name, query in record["queries"].items():
        cells = "".join(f"<td>{_cell(record, each, query, SMALL, 'queries', name)}</td>" for each in measures)
        yield f'<tr data-query="{escape(name)}"><td class="name">{_name(record, name, query)}</td>{cells}</tr>'
    yield "</table></div>"


def _name(record: HistoryRecord, name: str, query: QueryCourse) -> str:
    times = record["times"]
    told = [
        f"weight {weight:g}" if (weight := _last(query["weight"])) is not None else "",
        f"{_percent(fresh)} fresh" if (fresh := _over_time(times, query["freshness"])) is not None else "",
        f"answers {_seconds(mean_age(times, query))} old",
        f"QoS {_percent(qos)}" if (qos := _last(query["running_qos"])) is not None else "",
    ]
    lines = "".join(f"<small>{each}</small>" for each in told if each)
    return f"<b>{escape(name)}</b>{lines}"


def _cell(
    record: HistoryRecord, measure: ShownMeasure, query: QueryCourse, size: ChartSize, group: str, name: str
) -> str:
    values: Readings = query[measure.column]  # type: ignore[literal-required]
    second: Readings | None = query[measure.second] if measure.second else None  # type: ignore[literal-required]
    promise = Curve(query["curve"]).promise if query["curve"] else math.inf
    falls = measure.unit == "s" and promise < math.inf
    levels = [(promise, f"full worth up to {duration_text(promise)}")] if falls else []
    return _plot(record, measure, values, second, size, group, name, levels)


def _machine(record: HistoryRecord, measure: ShownMeasure) -> str:
    machine = record["machine"]
    second: Readings | None = machine[measure.second] if measure.second else None  # type: ignore[literal-required]
    return _plot(record, measure, machine[measure.column], second, LARGE, "machine", "", [])  # type: ignore[literal-required]


def _plot(
    record: HistoryRecord,
    measure: ShownMeasure,
    values: Readings,
    second: Readings | None,
    size: ChartSize,
    group: str,
    name: str,
    levels: Sequence[tuple[float, str]],
) -> str:
    highest = max((each for each in [*values, *(second or [])] if each is not None), default=0.0)
    highest = max([highest, *(level for level, _ in levels if level <= _NEAR * highest)])
    top = 1.0 if measure.unit == "%" else highest
    style = measure.style
    traces = [ChartLine(values, style, area=True)]
    if second is not None:
        traces.insert(0, ChartLine(second, f"{style} {'dashed' if measure.unit == '%' else 'second'}"))
    large = size is LARGE
    marks = record["marks"] if large else [each for each in record["marks"] if each[1].startswith(f"{name} ")]
    label = f"{measure.title}{f' of {name}' if name else ''}"
    drawn = chart(record["times"], traces, size, top=top, levels=levels, marks=marks, label=label)
    shown = {"%": "100 %", "s": _seconds(top)}.get(measure.unit, f"{top:,.4g}")
    head = f"<span>{measure.title if large else ''} <small>0 to {shown}</small></span><span class='now'></span>"
    end = duration_text(record["times"][-1]) if record["times"] else ""
    axis = f"<div class='axis'><span>0</span><span>{end}</span></div>" if large else ""
    of = escape("\t".join((group, name, measure.column, measure.unit)))
    return (
        f'<div class="cell" data-of="{of}" style="width:{size.width}px"><div class="head">{head}</div>'
        f'<div class="plot">{drawn}</div>{axis}</div>'
    )


def _decisions(record: HistoryRecord) -> Iterator[str]:
    """Decisions and what else happened, in the order of time; each belongs to the sample at or after it."""
    times = record["times"]
    told = [
        (time, f'<li data-at="{at}"><b>{_clock(time)}</b> <span>{escape(text)}</span></li>')
        for at, (time, text) in enumerate(zip(times, record["decisions"], strict=True))
        if text is not None
    ]
    for time, text in record["marks"]:
        told.append((time, f'<li class="event"><b>{_clock(time)}</b> <span>{escape(text)}</span></li>'))
    yield from (line for _, line in sorted(told, key=lambda each: each[0]))


def mean_age(times: Sequence[float], query: QueryCourse) -> float | None:
    """Mean age of the answers of a whole run."""
    sums = [0.0, 0.0]
    for at in range(1, len(times)):
        mean, rate = query["latency_s"][at], query["out_per_s"][at]
        if mean is not None and rate:
            answers = rate * (times[at] - times[at - 1])
            sums[0], sums[1] = sums[0] + mean * answers, sums[1] + answers
    return sums[0] / sums[1] if sums[1] else None


def _over_time(times: Sequence[float], values: Readings) -> float | None:
    """The mean over time of values that hold since the time before.

    >>> _over_time([0.0, 1.0, 4.0], [None, 1.0, 0.5])
    0.625
    """
    known = [(values[at], times[at] - times[at - 1]) for at in range(1, len(times)) if values[at] is not None]
    whole = math.fsum(passed for _, passed in known)
    return math.fsum((value or 0.0) * passed for value, passed in known) / whole if whole else None


def _last(values: Readings) -> float | None:
    return next((each for each in reversed(values) if each is not None), None)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100.0 * share:.1f} %"


def _seconds(value: float | None) -> str:
    return "–" if value is None else duration_text(value)


def _clock(seconds: float) -> str:
    """A time since the start.

    >>> _clock(3725.5), _clock(5.25)
    ('1:02:05.5', '5.25 s')
    """
    if seconds < 60.0:
        return f"{seconds:.4g} s"
    minutes, rest = divmod(seconds, 60.0)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02d}:{rest:04.1f}" if hours else f"{minutes}:{rest:04.1f}"
