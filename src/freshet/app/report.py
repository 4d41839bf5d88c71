"""The report of a run: what ``report.json`` says, while it runs and at its end."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, cast

from freshet.app.report_types import Report
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
) -> Report:
    """The report as plain values; its types say what each of them means."""
    made: dict[str, Any] = {
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
    return cast(Report, made)


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
