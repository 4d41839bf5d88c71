"""The report of a run: what ``report.json`` says, while it runs and at its end."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from freshet.model.telling import masked, masked_value

_PACKAGES: Final = ("pyspark", "pyarrow", "numpy", "sqlglot")
FORMAT: Final = 1
"""Version of the report's keys; new keys do not change it."""


def build(
    *,
    app: str,
    status: str,
    policy: str,
    meters: Mapping[str, Any],
    streams: Mapping[str, Any],
    sources: Mapping[str, Any],
    sinks: Mapping[str, Any],
    tables: Mapping[str, Any],
    changes: Mapping[str, str],
    notes: list[str],
    settings: Mapping[str, Any],
    error: str | None,
) -> dict[str, Any]:
    """The report as plain values.

    Returns:
        ``format``, ``app``, ``status`` (``running``, ``draining``, ``stopped``, ``failed``), ``error`` (why it
        failed, else None), ``policy``, ``written`` (ISO 8601),

        everything of :meth:`freshet.quality.Meters.snapshot`: ``time``, ``seconds``, ``queries``, ``total``,
        ``workers``, ``decisions``, ``overhead``; and ``trouble``: why steps are being tried again, else None,

        ``streams``: by name ``tuples``, ``late``, ``dead``, ``heartbeats``, ``bytes``, ``waiting_bytes``,
        ``held_back`` (why it takes nothing in now, else None),

        ``sources`` and ``sinks``: by name what each has done, with ``state`` and ``error``,

        ``tables``: by name ``versions``, ``kept``, ``rows``, ``bytes`` and ``error`` (why what is in the file now is
        not the newest version, else None),

        ``changes``: by query ``new``, ``unchanged``, ``changed``, ``back`` (it was out) or ``dropped``,
        ``notes``: sentences on what that meant,

        ``settings``: how it was started, ``versions`` of Freshet, Python and the libraries that compute.
    """
    return {
        "format": FORMAT,
        "app": app,
        "status": status,
        "error": None if error is None else masked(error),
        "policy": policy,
        "written": datetime.now(UTC).isoformat(timespec="milliseconds"),
        **meters,
        "streams": dict(streams),
        "sources": masked_value("", sources),
        "sinks": masked_value("", sinks),
        "tables": masked_value("", tables),
        "changes": dict(changes),
        "notes": masked_value("", notes),
        "settings": masked_value("", settings),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Versions of what runs."""
    import freshet

    found = {"freshet": freshet.__version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "?"
    return found


def write(report: Mapping[str, Any], path: Path) -> None:
    """Writes the report so that whoever reads the file finds a whole one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_text(json.dumps(report, indent=2, allow_nan=False) + "\n")
    part.replace(path)
