"""Makes the page that describes ``report.json`` from the types of its parts.

``python -m freshet.app.reports.page > docs/report.md`` writes it anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, get_args, get_type_hints, is_typeddict

from freshet.app.reports.types import Report

_HEAD: Final = """\
# The report

`freshet run` writes `report.json` (the key `report` of `[app]`) while it runs: about once a second while something
happens, else every ten seconds, and a last time at its end. `freshet run --json` prints the report; `run.report()` is
the same in Python. The file is complete whenever you open it.

`freshet report report.json` shows the report as a table. `freshet report report.json --html` writes a page for a
browser, one file that needs nothing else: for each query its freshness, the age of its answers (mean and 95th
percentile), its QoS (of the moment, and as a running average) and its queue over time, with the decisions of the
policy beside them. Move the pointer over a chart to see all values of that moment, and the decision. The page is
drawn from `report.history.json`, which a run keeps beside its report: a few hundred samples, ever further apart, so
that a night takes as much room as a minute. Taking and writing them costs at most a hundredth of the time each.
`run.history()` is the same in Python. A [simulated run](extending.md#a-policy) has such a page, too.

To see each step, call `run.observe(observer)`, or `app.start(observers=[observer])` to see the start, too: its method
`tell` gets every [event](../src/freshet/engine/events.py) of the engine when it happens. `run.decisions()`
has the latest decisions of the policy, each with its [reason](../src/freshet/policies/reason.py): the rule that chose
this step, and the figures that were weighed.

Names that end in `_s` are seconds, names that end in `_per_s` are rates per second. Shares lie between 0 and 1. An
unknown value is `null`. NAME stands for the name of a query, a stream, an operator or a setting; a sink is called
`QUERY/SINK`. Counts are for this run, unless a key says otherwise.
"""
_SECTIONS: Final = {
    "The run": (
        "format", "app", "status", "error", "trouble", "policy", "written", "time", "seconds", "notes", "changes",
    ),
    "Queries": ("queries", "feasible", "joins"),
    "All queries together": ("total",),
    "Streams, sources, sinks, tables": ("streams", "sources", "mirrors", "sinks", "tables"),
    "The machine": ("workers", "decisions", "latest_decision", "balance", "optimizer", "overhead", "ways", "residents",
                    "settings", "versions"),
}  # fmt: skip


def page() -> str:
    """The page.

    >>> "| `queries.NAME.freshness_exact` | true if no interval" in page()
    True
    """
    hints = get_type_hints(Report, include_extras=True)
    parts = [_HEAD]
    for title, keys in _SECTIONS.items():
        rows = [f"| `{key}` | {text} |" for name in keys for key, text in _rows(name, hints[name])]
        parts.append("\n".join([f"## {title}\n", "| key | meaning |", "| --- | --- |", *rows]) + "\n")
    return "\n".join(parts)


def _rows(key: str, annotated: Any) -> Iterator[tuple[str, str]]:
    """The keys of a type below a key, each with its meaning."""
    kind, meaning = get_args(annotated)
    inner = next((each for each in (kind, *get_args(kind)) if is_typeddict(each)), None)
    name = f"{key}.NAME" if getattr(kind, "__origin__", None) is dict else key
    if meaning:
        yield name, meaning
    if inner is not None:
        for field, hint in get_type_hints(inner, include_extras=True).items():
            yield from _rows(f"{name}.{field}", hint)


if __name__ == "__main__":
    print(page(), end="")
