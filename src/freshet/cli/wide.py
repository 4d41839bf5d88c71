"""What ``freshet run --wide`` adds: residents, what they keep of states, and the ways of steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from freshet.model import duration_text


def wide_lines(report: Mapping[str, Any]) -> Iterator[list[str]]:
    """Lines of a report, each in pieces, what matters most first: a narrow screen shows as much as fits.

    >>> places = [{"process": process, "host": "one", "kept_bytes": 1_000_000} for process in (7, 8)]
    >>> residents = {"wanted": 2, "reason": None, "present": places, "restarts": 1}
    >>> residents |= {"dispatches": 9, "lost": 1, "given_back": 0}
    >>> report = {"residents": residents, "workers": {"states_found": 5, "states_rebuilt": 1}}
    >>> report["ways"] = {"resident": {"calls": 8, "per_call_s": 0.0025}}
    >>> for pieces in wide_lines(report):
    ...     print(", ".join(pieces))
    residents 2 of 2, 2 on one, 1 restart, 9 dispatches, 1 lost, 0 units given back
    states found 5 times, rebuilt 1 time, 2.0 MB kept
    steps by resident: 8 at 2.5 ms
    """
    yield list(_residents(report["residents"]))
    kept = sum(each["kept_bytes"] for each in report["residents"]["present"])
    workers = report["workers"]
    found, rebuilt = (_counted(workers[key], "time") for key in ("states_found", "states_rebuilt"))
    yield [f"states found {found}", f"rebuilt {rebuilt}", f"{kept / 1e6:.1f} MB kept"]
    for name, way in report["ways"].items():
        yield [f"steps by {name}: {way['calls']:,} at {_overhead(way['per_call_s'])}"]


def _residents(told: Mapping[str, Any]) -> Iterator[str]:
    yield f"residents {len(told['present'])} of {told['wanted']}"
    if told["reason"] is not None:
        yield told["reason"]
    for host, count in sorted(Counter(each["host"] for each in told["present"]).items()):
        yield f"{count} on {host}"
    yield _counted(told["restarts"], "restart")
    yield _counted(told["dispatches"], "dispatch", "es")
    yield f"{told['lost']:,} lost"
    yield f"{_counted(told['given_back'], 'unit')} given back"


def _counted(number: int, word: str, ending: str = "s") -> str:
    return f"{number:,} {word}{'' if number == 1 else ending}"


def _overhead(seconds: float | None) -> str:
    return "-" if seconds is None else duration_text(seconds)
