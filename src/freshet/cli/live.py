"""What a person sees while an application runs: a live table on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from freshet.model import duration_text

Report = Mapping[str, Any]

FRAME: Final = 8
"""Lines of the screen that are not rows of the table."""
_COLUMNS: Final = ("query", "state", "in", "out", "waiting", "mean", "p95", "fresh", "in/s", "out/s")
_QOS: Final = _COLUMNS.index("fresh") + 1
"""Where the column of the QoS stands if some query has a latency curve."""


def table(report: Report, height: int = 40) -> RenderableType:
    """The live table; where not all queries fit the height, those with the worst freshness are shown."""
    ranked = sorted(report["queries"].items(), key=lambda item: (item[1]["freshness"], item[0]))
    room = max(3, height - FRAME)
    shown = ranked if len(ranked) <= room else ranked[: room - 1]
    grid = Table(box=None, pad_edge=False, header_style="bold")
    curves = report["total"]["qos"] is not None
    for name in (*_COLUMNS[:_QOS], "qos", *_COLUMNS[_QOS:]) if curves else _COLUMNS:
        text = name in ("query", "state")
        grid.add_column(name, justify="left" if text else "right", no_wrap=True, overflow="ellipsis")
    for name, query in shown:
        grid.add_row(*_row(name, query, curves), style="red" if query["state"] != "active" else "")
    parts: list[RenderableType] = [_head(report), grid]
    if len(shown) < len(ranked):
        best = ranked[len(shown)][1]["freshness"]
        rest = len(ranked) - len(shown)
        parts.append(Text(f"... and {rest} more, each with a freshness of at least {_percent(best)}", style="dim"))
    parts += [Text(note, style="yellow") for note in _notes(report)[:3]]
    return Group(*parts)


def line(report: Report) -> str:
    """The run in one line, for logs."""
    total = report["total"]
    parts = [
        f"{report['seconds']:.0f} s",
        f"{total['queries']} quer{'y' if total['queries'] == 1 else 'ies'}",
        f"in {_count(total['tuples_in'])}",
        f"out {_count(total['tuples_out'])}",
        f"waiting {_count(total['waiting'])}",
        f"response {_time(total['response']['mean_s'])} (p95 {_time(total['response']['p95_s'])})",
        f"fresh {_percent(total['freshness'])}",
        *([f"qos {_percent(total['qos']['average'])}"] if total["qos"] else []),
        f"busy {_percent(report['workers']['busy_share'])}",
        *_notes(report),
    ]
    return " · ".join(parts)


def _head(report: Report) -> Text:
    workers, total = report["workers"], report["total"]
    head = Text.assemble(
        (report["app"], "bold cyan"),
        f"  {report['status']}  {report['seconds']:.0f} s   policy ",
        (report["policy"], "bold"),
        f"   {workers['workers']} workers {_percent(workers['busy_share'])} busy",
        f"   deciding {_percent(report['decisions']['deciding_share'])}",
        f"   fresh {_percent(total['freshness'])}",
        f"   qos {_percent(total['qos']['average'])}" if total["qos"] else "",
        f"   response {_time(total['response']['mean_s'])}\n",
    )
    head.truncate(10_000)
    return head


def _notes(report: Report) -> list[str]:
    """What a person should know besides the figures."""
    trouble = report.get("trouble")
    notes = [f"trying again: {_first_line(trouble)}"] if trouble else []
    notes += [f"{name}: {query['state']}, {_first_line(query['reason'])}"
             for name, query in report["queries"].items() if query["state"] != "active"]  # fmt: skip
    for name, stream in report["streams"].items():
        aside = [
            f"{stream[kind]:,} {what}" for kind, what in (("dead", "dead letters"), ("late", "late")) if stream[kind]
        ]
        notes += [f"stream {name}: {', '.join(aside)}"] if aside else []
    notes += [f"table {name} stays as it was: {_first_line(table['error'])}"
              for name, table in report.get("tables", {}).items() if table["error"]]  # fmt: skip
    for kind in ("sources", "sinks"):
        notes += [f"{kind.removesuffix('s')} {name}: {part['state']}, {_first_line(part['reason'])}{_undelivered(part)}"
                  for name, part in report[kind].items() if part["reason"]]  # fmt: skip
    notes += [f"sink {name}: {_first_line(sink['note'])}" for name, sink in report["sinks"].items() if sink.get("note")]
    return notes


def _undelivered(part: Mapping[str, Any]) -> str:
    return f" ({_count(part['waiting'])} rows not delivered)" if part["state"] == "failing" else ""


def _row(name: str, query: Mapping[str, Any], curves: bool) -> tuple[str, ...]:
    response, rates = query["response"], query["throughput"]
    cells = (
        name,
        query["state"],
        _count(query["tuples_in"]),
        _count(query["tuples_out"]),
        _count(query["waiting"]),
        _time(response["mean_s"]),
        _time(response["p95_s"]),
        _percent(query["freshness"]),
        _count(rates["recent_in_per_s"]),
        _count(rates["recent_out_per_s"]),
    )
    return (*cells[:_QOS], _percent((query["qos"] or {}).get("mean")), *cells[_QOS:]) if curves else cells


def _first_line(text: str | None) -> str:
    return next(iter((text or "").splitlines()), "")


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else duration_text(seconds)


def _percent(share: float | None) -> str:
    """A share; what is not whole never reads as 100 %.

    >>> _percent(0.99999), _percent(1.0), _percent(None)
    ('99.9 %', '100 %', '-')
    """
    if share is None:
        return "-"
    return "100 %" if share >= 1.0 else f"{min(99.9, 100.0 * share):.1f} %"


def _count(number: float | None) -> str:
    """A count in at most six characters or so.

    >>> _count(999), _count(123_456), _count(7_654_321), _count(None)
    ('999', '123 k', '7.65 M', '-')
    """
    if number is None:
        return "-"
    for least, scale, unit in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if number >= least:
            return f"{number / scale:.3g} {unit}"
    return f"{number:.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
