"""The command in a process of its own, and a small application for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Command = Callable[..., subprocess.CompletedProcess[str]]
"""Runs the command with arguments."""
FRESHET = [sys.executable, "-m", "freshet"]

APP = """
[spark]
master = "local[2]"

[streams.packets]
schema = "host string, size int"
source = {kind = "generator", rate = 5000, limit = 1000}

[queries.large]
sql = "SELECT host, size FROM packets WHERE size > 50"
sinks = [{kind = "console"}]
"""


def freshet_command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*FRESHET, *map(str, arguments)], capture_output=True, text=True, check=False)
