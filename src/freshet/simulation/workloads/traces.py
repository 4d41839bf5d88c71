"""Arrival times from real traces."""

from __future__ import annotations

import csv
import gzip
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from freshet.model import UserError
from freshet.simulation.outcome import Floats

TRACES: Final = {
    "packets": ("bellcore_bc_paug89_first100k.csv.gz", "ts_s"),
    "events": ("wrccdc2018_zeek_events.csv.gz", "ts"),
}
"""The two streams that stand in for the TCP and UDP packets of FAS §6: Ethernet packets (Bellcore 1989) and network
events of a cyber-defence contest (Zeek logs, ordered by time)."""


def trace_folder() -> Path | None:
    """Where the traces lie: ``shared/data`` beside the project or the working directory; None if there is none."""
    places = [Path.cwd(), *Path.cwd().parents, *Path(__file__).resolve().parents]
    folders = (place / "shared" / "data" for place in places)
    return next((folder for folder in folders if all((folder / file).exists() for file, _ in TRACES.values())), None)


def trace_arrivals(name: str, seconds: float) -> Floats:
    """Arrival times within the first seconds of a trace, beginning at 0."""
    folder = trace_folder()
    if folder is None:
        raise UserError(f"trace {name!r}: there is no folder shared/data with {TRACES[name][0]}")
    file, column = TRACES[name]
    times = _times(folder / file, column)
    return times[times < seconds]


@lru_cache
def _times(file: Path, column: str) -> Floats:
    with gzip.open(file, "rt") as lines:
        times: Floats = np.sort(np.array([float(row[column]) for row in csv.DictReader(lines)]))
    times -= times[0]
    return times
