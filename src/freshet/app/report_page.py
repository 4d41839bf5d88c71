"""The page that describes ``report.json``, made from the types of its parts.

``python -m freshet.app.report_page > docs/report.md`` writes it anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, get_args, get_type_hints, is_typeddict

from freshet.app.report_types import Report

_HEAD: Final = """\
# The report

`freshet run` keeps `report.json` (the key `report` of `[app]`) up to date while it runs, about once a second, and
leaves the last one at its end; `freshet run --json` prints it, `run.report()` is the same in Python. Whoever opens the
file finds a whole one. Whoever wants to see each step calls `run.observe(observer)`: its method `tell` is given every
[event](../src/freshet/engine/events.py) of the engine when it happens.

Names that end in `_s` are seconds, in `_per_s` rates per second; shares are between 0 and 1; what is not known is
`null`. NAME stands for the name of a query, a stream, an operator or a setting; a sink is called `QUERY/SINK`. Counts
are of this run, unless a key says otherwise.
"""
_SECTIONS: Final = {
    "The run": (
        "format", "app", "status", "error", "trouble", "policy", "written", "time", "seconds", "notes", "changes",
    ),
    "Queries": ("queries",),
    "All queries together": ("total",),
    "Streams, sources, sinks, tables": ("streams", "sources", "sinks", "tables"),
    "The machine": ("workers", "decisions", "overhead", "settings", "versions"),
}  # fmt: skip


def page() -> str:
    """The page.

    >>> "| `queries.NAME.freshness_exact` | whether no interval" in page()
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
