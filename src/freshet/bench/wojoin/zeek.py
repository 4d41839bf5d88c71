"""Zeek logs as streams: their keys, and when their rows come."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from freshet.model import UserError
from freshet.simulation.workloads.traces import TRACES, trace_folder

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ZeekLog:
    """Rows of a log in the order in which they were written.

    Args:
        keys: Their times, in microseconds.
        uids: Their connections.
    """

    keys: Ints
    uids: tuple[str, ...]

    @cached_property
    def arrivals(self) -> Ints:
        """When they come: as soon as the newest time so far is there."""
        newest: Ints = np.maximum.accumulate(self.keys)
        return newest


def zeek_logs(names: Sequence[str], rows: int) -> dict[str, ZeekLog]:
    """The first rows of some logs.

    Raises:
        UserError: The traces are not there.
    """
    folder, file = trace_folder(), TRACES["events"][0]
    if folder is None:
        raise UserError(f"there is no folder shared/data with {file} beside the project or the working directory")
    found = defaultdict[str, list[tuple[int, int, str]]](list)
    with gzip.open(folder / file, "rt") as lines:
        for row in csv.DictReader(lines):
            if row["log"] in names:
                found[row["log"]].append((int(row["seq"]), round(float(row["ts"]) * 1e6), row["uid"]))
    logs = {}
    for name in names:
        _, keys, uids = zip(*sorted(found[name])[:rows], strict=True)
        logs[name] = ZeekLog(np.array(keys, np.int64), uids)
    return logs


class Merged:
    """Two logs in the order in which their rows come together.

    Args:
        sides: The logs.
    """

    def __init__(self, *sides: ZeekLog) -> None:
        self.sides = sides
        arrivals = np.concatenate([side.arrivals for side in sides])
        order = np.argsort(arrivals, kind="stable")
        self.arrivals = arrivals[order]
        """When each row comes."""
        self.side = np.repeat(np.arange(len(sides)), [len(side.keys) for side in sides])[order]
        """Which log it is from."""
        self.places: tuple[Ints, ...] = tuple(np.flatnonzero(self.side == at) for at in range(len(sides)))
        """For each log, the places of its rows among all."""

    @property
    def rows(self) -> int:
        """Number of all rows."""
        return len(self.arrivals)

    @cached_property
    def pairs(self) -> Ints:
        """The rows of both logs that join, as pairs of their numbers."""
        first, second = self.sides
        by_key = defaultdict[tuple[int, str], list[int]](list)
        for number, key in enumerate(zip(second.keys.tolist(), second.uids, strict=True)):
            by_key[key].append(number)
        keys = enumerate(zip(first.keys.tolist(), first.uids, strict=True))
        return np.array([(one, other) for one, key in keys for other in by_key.get(key, ())]).reshape(-1, 2)
