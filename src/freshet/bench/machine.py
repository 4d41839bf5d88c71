"""The conditions under which something was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import psutil

import freshet
from freshet.spark.session.java import java_home

_PACKAGES: Final = ("pyspark", "pyarrow", "numpy", "sqlglot")


def conditions(folder: Path) -> dict[str, Any]:
    """The machine at this moment; ``folder`` is where state is written.

    >>> sorted(conditions(Path(".")))
    ['cores', 'disk', 'java', 'load_at_start', 'memory_gb', 'started', 'system', 'versions']
    """
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "load_at_start": [round(load, 2) for load in os.getloadavg()],
        "disk": _disk(folder),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "java": _java(),
        "versions": _versions(),
    }


def _disk(folder: Path) -> str:
    """The file system of a folder: figures of durable writes mean little on a file system in memory."""
    place = str(folder.resolve())
    parts = [part for part in psutil.disk_partitions(all=True) if _within(place, part.mountpoint)]
    return max(parts, key=lambda part: len(part.mountpoint)).fstype if parts else "unknown"


def _within(place: str, mount: str) -> bool:
    return place == mount or place.startswith(mount.rstrip("/") + "/")


def _java() -> str:
    home = java_home()
    if home is None:
        return "none"
    said = subprocess.run([f"{home}/bin/java", "-version"], capture_output=True, text=True, check=False).stderr
    return next(iter(said.splitlines()), "unknown")


def _versions() -> dict[str, str]:
    found = {"freshet": freshet.__version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    return found
