"""What a person sees while an application runs: a live table on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from freshet.app.reports.feasible import line_of_verdicts
from freshet.cli.table_layout import TableColumn, choose, cut, line_of, row_of
from freshet.cli.wide import wide_lines
from freshet.model import duration_text

ShownReport = Mapping[str, Any]

NOTES: Final = 3
"""Maximum number of lines of notes."""
_LEAST_ROWS: Final = 3
_STYLES: Final = {"running": "green", "draining": "cyan", "held": "yellow", "quarantined": "bold red"}
_TROUBLE: Final = {"quarantined": 0, "held back": 1}
"""States that are shown first."""
ENDED: Final = ("stopped", "failed")
"""States of a run that is over."""
_COLUMNS: Final = (
    TableColumn("query", 0, left=True),
    TableColumn("state", 1, left=True),
    TableColumn("promise", 2, left=True),
    TableColumn("age", 2),
    TableColumn("p95", 5),
    TableColumn("oldest", 6),
    TableColumn("fresh", 4),
    TableColumn("qos", 7),
    TableColumn("waiting", 3),
    TableColumn("missing", 7),
    TableColumn("missed", 2),
    TableColumn("quality", 4),
    TableColumn("out/s", 8, 6),
    TableColumn("in/s", 9, 6),
    TableColumn("out", 10, 6),
    TableColumn("in", 11, 6),
)


def table(report: ShownReport, height: int = 40, hint: str = "", wide: bool = False) -> RenderableType:
    """The live table, as wide as the screen allows.

    If not all queries fit the height, those in trouble come first, then those with the worst freshness. Among equals
    the heavier query comes first.

    Args:
        report: The present report of the run.
        height: Number of lines of the screen.
        hint: What the person can do now; shown instead of the status of the run.
        wide: Whether to show residents, kept states and ways of steps, too.
    """
    return _Table(report, height, hint, wide)


def line(report: ShownReport, wide: bool = False) -> str:
    """The run in one line, for logs."""
    total, status = report["total"], report["status"]
    parts = [
        f"{report['seconds']:.0f} s",
        *([status] if status != "running" else []),
        f"{total['queries']} quer{'y' if total['queries'] == 1 else 'ies'}",
        _answers(report),
        _oldest(total),
        f"in {_count(total['tuples_in'])}",
        f"out {_count(total['tuples_out'])}",
        f"waiting {_count(total['waiting'])}",
        f"fresh {_percent(total['freshness'])}",
        *([f"qos {_percent(total['qos']['average'])}"] if total["qos"] else []),
        *(", ".join(_mirror(name, told)) for name, told in report.get("mirrors", {}).items()),
        f"busy {_percent(report['workers']['busy_share'])}",
        *(", ".join(pieces) for pieces in (wide_lines(report) if wide else ())),
        *_notes(report),
    ]
    return " · ".join(parts)


class _Table:
    """The live table of a report; its width is known when it is drawn."""

    def __init__(self, report: ShownReport, height: int, hint: str, wide: bool) -> None:
        self._report, self._hint = report, hint
        self._lines = [list(_mirror(*item)) for item in report.get("mirrors", {}).items()]
        self._lines += wide_lines(report) if wide else ()
        self._notes = _first(_notes(report))
        ranked = sorted(report["queries"].items(), key=_importance)
        room = max(_LEAST_ROWS, height - 4 - len(self._notes) - len(self._lines))
        shown = len(ranked) if len(ranked) <= room else room - 1
        self._shown, self._rest = ranked[:shown], ranked[shown:]
        # The latest decision has a line only where there is one to spare.
        self._why = (report.get("latest_decision") or "") if len(ranked) < room else ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        width = options.max_width
        yield self._title(width)
        yield line_of(_summary(self._report), width)
        for pieces in self._lines:
            yield line_of(map(Text, pieces), width, gap=", ")
        yield Text()
        yield from self._grid(width)
        if self._rest:
            yield Text(cut(_more(self._rest), width), style="dim", no_wrap=True)
        yield from (Text(cut(note, width), style="yellow", no_wrap=True) for note in self._notes)
        if self._why and self._report["status"] not in ENDED:
            yield Text(cut(self._why, width), style="dim", no_wrap=True)

    def _title(self, width: int) -> Text:
        report, workers = self._report, self._report["workers"]
        status = self._hint or report["status"]
        name = Text(cut(report["app"], max(4, width - len(status) - 2)), style="bold")
        first = name + Text("  ") + Text(status, style=_STYLES.get(report["status"], ""))
        rest = (
            f"{report['seconds']:.0f} s",
            f"policy {report['policy']}{_beta(report)}",
            f"{workers['workers']} workers {_percent(workers['busy_share'])} busy",
            f"deciding {_percent(report['decisions']['deciding_share'])}",
        )
        return line_of([first, *map(Text, rest)], width)

    def _grid(self, width: int) -> Iterator[Text]:
        report = self._report
        rows = [_row(name, query, report["status"]) for name, query in self._shown]
        columns = [column for column in _COLUMNS if column.title not in _unused(report)]
        cells = [[row[column.title] for column in columns] for row in rows]
        chosen, widths = choose(columns, cells, width)
        columns = [columns[place] for place in chosen]
        head = row_of(columns, [column.title for column in columns], widths)
        yield Text(cut(head, width), style="bold", no_wrap=True)
        for row, each in zip(rows, cells, strict=True):
            text = Text(cut(row_of(columns, [each[place] for place in chosen], widths), width), no_wrap=True)
            style = _STYLES.get(row["state"], "")
            # Trouble colours the whole row, any other state only its word.
            text.stylize(style, *(() if row["state"] in ("held", "quarantined") else _span(chosen, widths)))
            yield text


def _unused(report: ShownReport) -> set[str]:
    """Columns that say the same of every query."""
    qos = set() if report["total"]["qos"] is not None else {"qos"}
    each = report["queries"].values()
    periodic = set() if any(query.get("instances") for query in each) else {"missed", "quality"}
    return qos | periodic | {title for title in ("promise", "missing") if not any(query.get(title) for query in each)}


def _beta(report: ShownReport) -> str:
    """The beta that was found, if a balance is expected.

    >>> _beta({"balance": {"beta": 0.55}}), _beta({"balance": None})
    (', beta 0.55', '')
    """
    balance = report.get("balance")
    return "" if balance is None else f", beta {balance['beta']:.3g}"


def _promise(query: Mapping[str, Any]) -> str:
    """How it stands with what is expected of a query.

    >>> _promise({"promise": {"measures": {"latency": {}}, "standing": "broken", "broken": ["latency", "memory"]}})
    'broken: latency, memory'
    """
    told = query.get("promise")
    if not told or not told["measures"]:
        return "-"
    return ": ".join([told["standing"], *([", ".join(told["broken"])] if told["broken"] else [])])


def _span(chosen: list[int], widths: list[int]) -> tuple[int, int]:
    """Where the state is in a row."""
    start = widths[0] + 2
    return (start, start + widths[1]) if 1 in chosen else (0, 0)


def _importance(item: tuple[str, Mapping[str, Any]]) -> tuple[int, float, float, str]:
    """A key that is smallest for what a person should see first. Freshness counts as it is shown, so that rows do not
    jump."""
    name, query = item
    return (_TROUBLE.get(query["state"], 2), round(_fresh(query), 3), -query["weight"], name)


def _fresh(query: Mapping[str, Any]) -> float:
    """Its freshness; a query with a PERIOD has none, and counts as fresh."""
    return 1.0 if query["freshness"] is None else float(query["freshness"])


def _more(rest: list[tuple[str, Mapping[str, Any]]]) -> str:
    fresh = min(_fresh(query) for _, query in rest)
    states = [query["state"] for _, query in rest]
    trouble = "".join(f", {states.count(state)} {state}" for state in _TROUBLE if state in states)
    return f"... and {len(rest)} more, each at least {_percent(fresh)} fresh{trouble}"


def _summary(report: ShownReport) -> Iterator[Text]:
    total = report["total"]
    yield Text(_answers(report), style="bold")
    yield Text(_oldest(total))
    yield Text(f"fresh {_percent(total['freshness'])}")
    if total["qos"]:
        yield Text(f"qos {_percent(total['qos']['average'])}")


def _mirror(name: str, told: Mapping[str, Any]) -> Iterator[str]:
    """A mirror in a line, what matters most first: a narrow screen shows as much as fits."""
    audited = told["freshness_audited"]
    yield f"mirror {name} {_percent(told['freshness'])} fresh"
    if audited is not None:
        yield f"audited {_percent(audited)}"
    if told["failing"]:
        yield f"{told['failing']} failing"
    yield f"budget {_percent(told['budget_used'])} used"
    for what in ("polls", "changes", "bytes"):
        yield f"{_count(told[what])} {what[:-1] if told[what] == 1 else what}"


def _answers(report: ShownReport) -> str:
    """How old answers are: those of the last seconds, or, at the end, those of the whole run."""
    ended = report["status"] in ENDED
    mean, p95 = _ages(report["total"]["response"], report["status"])
    if mean is None:
        return "no answers" if ended else "no answers in the last seconds"
    return f"answers {'were ' if ended else ''}{_time(mean)} old (p95 {_time(p95)})"


def _oldest(total: Mapping[str, Any]) -> str:
    age = total["oldest_waiting_s"]
    return "nothing waits" if age is None else f"oldest waiting {_time(age)}"


def _ages(response: Mapping[str, Any], status: str) -> tuple[float | None, float | None]:
    which = "" if status in ENDED else "recent_"
    return response[f"{which}mean_s"], response[f"{which}p95_s"]


def _notes(report: ShownReport) -> list[str]:
    """What a person should know besides the figures."""
    trouble = report.get("trouble")
    notes = [f"trying again: {_first_line(trouble)}"] if trouble else []
    notes += [f"{name}: {query['state']}, {_first_line(query['reason'])}"
             for name, query in report["queries"].items() if query["state"] != "active"]  # fmt: skip
    notes += [f"{name}: {errors_text(query)}" for name, query in report["queries"].items() if query["errors"]]
    for name, stream in report["streams"].items():
        aside = [
            f"{stream[kind]:,} {what}" for kind, what in (("dead", "dead letters"), ("late", "late")) if stream[kind]
        ]
        notes += [f"stream {name}: {', '.join(aside)}"] if aside else []
    notes += [f"table {name} stays as it was: {_first_line(table['error'])}"
              for name, table in report.get("tables", {}).items() if table["error"]]  # fmt: skip
    notes += [
        f"mirror {name}: its floors need {need:.3g} {told['unit']} a second, and the budget is {told['budget_per_s']:g}"
        for name, told in report.get("mirrors", {}).items()
        if (need := told["floors_need_per_s"] or 0.0) > told["budget_per_s"]
    ]
    notes += [told] if (told := line_of_verdicts(report.get("feasible", []))) else []
    for kind in ("sources", "sinks"):
        notes += [f"{kind.removesuffix('s')} {name}: {part['state']}, {_first_line(part['reason'])}{_undelivered(part)}"
                  for name, part in report[kind].items() if part["reason"]]  # fmt: skip
    notes += [f"sink {name}: {_first_line(sink['note'])}" for name, sink in report["sinks"].items() if sink.get("note")]
    return notes


def errors_text(query: Mapping[str, Any]) -> str:
    """How often the expressions of a query had no value.

    >>> errors_text({"errors": 1}), errors_text({"errors": 2000})
    ('1 evaluation error gave NULL', '2,000 evaluation errors gave NULL')
    """
    return f"{query['errors']:,} evaluation error{'' if query['errors'] == 1 else 's'} gave NULL"


def _first(notes: list[str]) -> list[str]:
    """The notes that are shown; the last one says how many more there are.

    >>> _first(["a", "b", "c"]), _first(["a", "b", "c", "d"])
    (['a', 'b', 'c'], ['a', 'b', '... and 2 more notes: see the report'])
    """
    if len(notes) <= NOTES:
        return notes
    return [*notes[: NOTES - 1], f"... and {len(notes) - NOTES + 1} more notes: see the report"]


def _undelivered(part: Mapping[str, Any]) -> str:
    return f" ({_count(part['waiting'])} rows not delivered)" if part["state"] == "failing" else ""


def _row(name: str, query: Mapping[str, Any], status: str) -> dict[str, str]:
    """The cells of a query by the title of their column."""
    rates, instances = query["throughput"], query.get("instances")
    mean, p95 = _ages(query["response"], status)
    return {
        "query": name,
        "state": {"active": status, "held back": "held"}.get(query["state"], query["state"]),
        "promise": _promise(query),
        "age": _time(mean),
        "p95": _time(p95),
        "oldest": _time(query["oldest_waiting_s"]),
        "fresh": _percent(query["freshness"]),
        "qos": _percent((query["qos"] or {}).get("mean")),
        "waiting": _count(query["waiting"]),
        "missing": _percent(1.0 - query["completeness"]) if query.get("missing") else "0 %",
        "missed": _percent(instances["missed"] / instances["instances"]) if instances else "-",
        "quality": _percent(instances["quality"]) if instances else "-",
        "out/s": _count(rates["recent_out_per_s"]),
        "in/s": _count(rates["recent_in_per_s"]),
        "out": _count(query["tuples_out"]),
        "in": _count(query["tuples_in"]),
    }


def _first_line(text: str | None) -> str:
    return next(iter((text or "").splitlines()), "")


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else duration_text(seconds)


def _percent(share: float | None) -> str:
    """A share as a percentage; a share below 1 never reads as 100 %.

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
