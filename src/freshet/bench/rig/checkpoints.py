"""How far a streaming query has come, by its checkpoint: which files each micro-batch had, and when it ended."""

from __future__ import annotations

import json
from pathlib import Path


def name_of(number: int) -> str:
    """The name of an input file.

    >>> name_of(7), number_of("file:///folder/" + name_of(7))
    ('000007.parquet', 7)
    """
    return f"{number:06}.parquet"


def number_of(path: str) -> int:
    """The number of an input file."""
    return int(path.rpartition("/")[2].removesuffix(".parquet"))


class Checkpoint:
    """The checkpoint of a streaming query over a folder of files, read from outside.

    Args:
        folder: Folder of the checkpoint.
        marks: Where the query leaves a file for each readable micro-batch; by default its own commits.
    """

    def __init__(self, folder: Path, marks: Path | None = None) -> None:
        self.folder = folder
        self._marks = marks or folder / "commits"
        self._ended: dict[int, float] = {}
        self._files: dict[int, tuple[int, ...]] = {}

    @property
    def batches(self) -> dict[int, float]:
        """When each micro-batch became readable: the moment at which its mark got its name."""
        for batch, path in numbered(self._marks).items():
            if batch not in self._ended:
                self._ended[batch] = path.stat().st_ctime
        return self._ended

    def files(self, batch: int) -> tuple[int, ...]:
        """The numbers of the input files of a micro-batch."""
        if batch not in self._files:
            path = numbered(self.folder / "sources" / "0")[batch]
            entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
            # Every tenth file repeats all earlier ones.
            self._files[batch] = tuple(number_of(each["path"]) for each in entries if each["batchId"] == batch)
        return self._files[batch]

    def answered(self) -> dict[int, float]:
        """When each input file was answered."""
        return {number: moment for batch, moment in self.batches.items() for number in self.files(batch)}


def numbered(folder: Path) -> dict[int, Path]:
    """The files of one of Spark's metadata logs, by micro-batch.

    >>> numbered(Path("nowhere"))
    {}
    """
    if not folder.is_dir():
        return {}
    paths = [path for path in folder.iterdir() if path.name.removesuffix(".compact").isdigit()]
    return {int(path.name.removesuffix(".compact")): path for path in paths}


def written(marks: Path) -> list[Path]:
    """The Parquet files that are part of a streaming query's output, according to its file sink's own log."""
    found = []
    for path in numbered(marks).values():
        entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
        found += [Path(each["path"].removeprefix("file://")) for each in entries]
    return sorted(set(found))
