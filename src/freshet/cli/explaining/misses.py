"""The part of ``freshet explain`` on instances of periodic queries that were late, and why."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from freshet.cli.explaining.feasible import figures_of
from freshet.model import duration_text

_TITLES: Final = ("released", "late by", "waited", "predicted", "took", "left out", "meanwhile")
_NAMED: Final = 3
"""Number of queries that are named as those that ran meanwhile, at most."""


def misses_text(path: Path | None, queries: Sequence[str], as_json: bool) -> str:
    """The last instances of queries that were late, as tables or as JSON, from the figures of a report."""
    told = figures_of(path, "--misses")["queries"]
    found = {name: told[name]["instances"] for name in queries if name in told and told[name].get("instances")}
    if as_json:
        return json.dumps({name: each.get("misses", []) for name, each in found.items()})
    if not found:
        return "no instance of a periodic query has ended yet"
    return "\n\n".join("\n".join(_lines(name, each)) for name, each in found.items())


def _lines(name: str, instances: Mapping[str, Any]) -> Iterator[str]:
    ended, missed = instances["instances"], instances["missed"]
    yield f"query {name}: {missed} of {ended} instances were not answered by their deadline"
    misses = instances.get("misses", [])
    if misses:
        rows = [_TITLES, *map(_row, misses)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_TITLES))]
        yield from (
            ("  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))).rstrip()
            for row in rows
        )


def _row(miss: Mapping[str, Any]) -> tuple[str, ...]:
    """A miss in words.

    >>> row = _row({"release": 0.0, "late_s": 0.25, "waited_s": 1.0, "predicted_s": None, "took_s": 0.25,
    ...             "dropped": 0.4, "blocked_by": {"a": 0.1, "b": 0.7}})
    >>> row[1:]
    ('250 ms', '1 s', 'unknown', '250 ms', '40 %', 'b 700 ms, a 100 ms')
    """
    blocked = sorted(miss["blocked_by"].items(), key=lambda each: -each[1])
    told = [f"{name} {duration_text(seconds)}" for name, seconds in blocked[:_NAMED]]
    told += [f"{len(blocked) - _NAMED} more"] if len(blocked) > _NAMED else []
    return (
        time.strftime("%H:%M:%S", time.localtime(miss["release"])),
        "given up" if miss["late_s"] is None else duration_text(miss["late_s"]),
        duration_text(miss["waited_s"]),
        "unknown" if miss["predicted_s"] is None else duration_text(miss["predicted_s"]),
        duration_text(miss["took_s"]),
        f"{100.0 * miss['dropped']:.0f} %",
        ", ".join(told),
    )
