"""The application of the live benchmark: mirrors of the resources of a server, and queries that read them."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LONGEST_START: Final = 300.0
_QUERIES: Final = """
[streams.events]
schema = "ts timestamp, key int, size int"
event_time = "ts"
lateness = "1 s"
source = {kind = "generator", rate = 500}

[queries.heavy]
sql = "SELECT key, size FROM events WHERE size > 500"

[queries.per_second]
sql = "SELECT window.start AS second, count(*) AS n FROM events GROUP BY window(ts, '1 second')"
"""


@dataclass(frozen=True, slots=True)
class MirrorCase:
    """One mirror of all resources.

    Args:
        name: Of its stream; the server knows its requests by it.
        worth: Worth of each resource, as the mirror believes.
        rates: Change rates that it knows; None: it learns them.
    """

    name: str
    worth: Floats
    rates: Floats | None


def write_application(folder: Path, address: str, cases: list[MirrorCase], budget: float) -> Path:
    """Writes an application with one stream and one query for each mirror; returns its file."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [f'[app]\nname = "live"\nstate = "state"\n[spark]\nmaster = "local[2]"\n{_QUERIES}']
    for case in cases:
        _write_elements(folder / f"{case.name}.csv", case)
        parts.append(_mirror(case, address, budget))
    file = folder / "live.toml"
    file.write_text("\n".join(parts))
    return file


def _mirror(case: MirrorCase, address: str, budget: float) -> str:
    learn = "true" if case.rates is None else "false"
    return f"""
[streams.{case.name}]
schema = "element string, version bigint, value double, polled timestamp, changed timestamp"
retention = {{history = "unlimited", history_bytes = "unlimited"}}

[streams.{case.name}.source]
kind = "mirror"
elements = {{file = "{case.name}.csv"}}
http = {{url = "{address}/{case.name}/{{element}}"}}
budget = {budget!r}
learn = {learn}
change_every = "3 s"
audit = 0.01
connections = 128
timeout = "60 s"

[queries.read_{case.name}]
sql = "SELECT element, version, value FROM {case.name}"
"""


def _write_elements(path: Path, case: MirrorCase) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["element", "worth", "rate"])
        for number, worth in enumerate(case.worth.tolist()):
            writer.writerow([number, repr(worth), "" if case.rates is None else repr(float(case.rates[number]))])


class RunningApplication:
    """``freshet run`` in a process of its own."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._child = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        report = self._file.parent / "report.json"
        report.unlink(missing_ok=True)
        with (self._file.parent / "application.log").open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "freshet", "run", str(self._file)], stdout=log, stderr=log,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        until = time.monotonic() + _LONGEST_START
        while not report.exists():
            if child.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the application did not start:\n{self._said()}")
            time.sleep(0.05)
        return child

    def kill(self) -> None:
        """Ends it by SIGKILL, at once."""
        self._child.kill()
        self._child.wait()

    def start_again(self) -> None:
        """Starts it on the same state."""
        self._child = self._start()

    def report(self) -> dict[str, Any]:
        """What it says of itself."""
        found: dict[str, Any] = json.loads((self._file.parent / "report.json").read_text())
        return found

    def stop(self) -> None:
        """Lets it end by itself."""
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(60.0)
            except subprocess.TimeoutExpired:
                self.kill()

    def _said(self) -> str:
        return (self._file.parent / "application.log").read_text(errors="replace")[-3000:]


@contextmanager
def running(file: Path) -> Iterator[RunningApplication]:
    """An application that is ended at the end of the block."""
    made = RunningApplication(file)
    try:
        yield made
    finally:
        made.stop()
