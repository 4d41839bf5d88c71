"""The Parquet files of ``freshet bench many``: written once, then dropped into a side's folder at a pace."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from freshet.bench.many.queries import make_rows
from freshet.bench.rig.checkpoints import name_of

INTERVAL: Final = 0.25
"""Seconds between files: long enough that opening small files does not slow down a long micro-batch."""


@dataclass(frozen=True, slots=True)
class Files:
    """Files with the same number of rows each. The number of a file tells its rows: ``number * rows`` is its first id.

    Args:
        folder: Where they lie.
        rows: Number of rows of each.
        count: Number of files.
    """

    folder: Path
    rows: int
    count: int

    @classmethod
    def write(cls, folder: Path, rows: int, count: int, seed: int = 0) -> Files:
        """Writes them."""
        folder.mkdir(parents=True)
        for number in range(count):
            pq.write_table(make_rows(number * rows, rows, seed), folder / name_of(number))
        return cls(folder, rows, count)

    def paths(self, numbers: Sequence[int]) -> list[Path]:
        """Where files lie."""
        return [self.folder / name_of(number) for number in numbers]

    def drop(self, numbers: Sequence[int], target: Path, interval: float = INTERVAL) -> list[float]:
        """Brings files into a folder, one after each interval: first hidden, then renamed.

        Returns:
            When each of them arrived: the moment before its rename.
        """
        began, arrivals = time.time(), []
        for place, number in enumerate(numbers, 1):
            hidden = target / f"_{name_of(number)}"
            shutil.copyfile(self.folder / name_of(number), hidden)
            time.sleep(max(0.0, began + place * interval - time.time()))
            arrivals.append(time.time())
            hidden.rename(target / name_of(number))
        return arrivals
