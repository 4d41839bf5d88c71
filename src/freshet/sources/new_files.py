"""The files that come into a folder, each exactly once."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from pydantic import Field

from freshet.log import Malformed
from freshet.model import Stream, UserError
from freshet.sources.files import MALFORMED, CsvRows, ParquetRows, why_malformed
from freshet.sources.folder import OWN_FAULTS, FileOrder, FinishedFile, Folder, FoundFile
from freshet.sources.json_rows import JsonRows
from freshet.sources.options import Duration, LocalPath, Options
from freshet.sources.source import Batch

_LOGGER: Final = logging.getLogger(__name__)

Format = Literal["csv", "json", "parquet"]
_SUFFIXES: Final[dict[str, Format]] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}

Block: TypeAlias = pa.Table | Sequence[Mapping[str, Any] | str]


class FilesOptions(Options):
    """Options of the source kind ``files``.

    Args:
        path: The folder.
        pattern: Which files count, as in a shell: ``"*.csv"``.
        format: What they hold; by default their suffixes tell.
        order: ``time``: by modification time, then name; ``name``: by name alone.
        settle: A file is complete when nothing has changed it for this long; use 0 if files appear by a rename.
        interval: How often it looks for new files.
        follow: Whether it waits for more files; otherwise it ends with those that are there.
        columns: The name in the files, for each column of the stream that has another name there.
        remember: How many of the files that were read last are known by their names.
        max_rows: Maximum number of rows in one batch.
    """

    path: LocalPath
    pattern: str = Field(default="*", min_length=1)
    format: Format | None = None
    order: FileOrder = "time"
    settle: Annotated[Duration, Field(ge=0)] = 1.0
    interval: Annotated[Duration, Field(gt=0)] = 0.5
    follow: bool = True
    columns: dict[str, str] = Field(default_factory=dict)
    remember: int = Field(default=500, ge=1)
    max_rows: int = Field(default=10_000, ge=1)


class FilesSource:
    """Reads the files of a folder, one after the other, each once and whole.

    Its position is how far it has come: which file, and how many of its rows. What cannot be read becomes a dead
    letter: a row, or a whole file. Event times stay what the files say; a row arrives when it is read.
    """

    def __init__(self, options: FilesOptions, stream: Stream) -> None:
        self._options, self._stream = options, stream
        path = options.path.expanduser()
        if not path.is_dir():
            raise UserError(f"{path} is a file: name its folder" if path.exists() else f"folder {path} does not exist")
        for name in options.columns:
            if name not in stream.schema.names:
                raise UserError(f"columns.{name} is not a column of stream {stream.name}")
        self._mapping = {name: options.columns.get(name, name) for name in stream.schema.names}
        self._folder = Folder(path, options.pattern, options.order, options.settle)
        self._finished = FinishedFile(options.remember)
        self._waiting: list[FoundFile] = []
        self._unsettled = True
        self._look_at = 0.0
        self._below: set[str] | None = None
        self._late: list[str] = []
        self._file: FoundFile | None = None
        self._row = 0
        self._blocks: Iterator[Block] = iter(())
        self._block: Block | None = None

    def restore(self, position: Mapping[str, Any]) -> None:
        self._finished = FinishedFile.restored(self._options.remember, position)
        name = position["file"]
        if name is None:
            return
        found = self._folder.look(name)
        if found is None:
            raise UserError(
                f"file {self._folder.path / name} is gone after {position['row']} of its rows: put it back "
                "(or an empty file of that name, to go without its rest)"
            )
        if found.size not in (position["size"], 0):
            raise UserError(f"file {self._folder.path / name} has changed after {position['row']} of its rows")
        self._begin(found, position["row"])

    def poll(self, now: float) -> Batch | None:
        self._look(now)
        if self._late:
            return self._batch(now, self._not_read())
        while self._block is None:
            if not self._waiting:
                return None
            self._begin(self._waiting.pop(0), 0)
        rows = self._block[: self._options.max_rows]
        rest = self._block[self._options.max_rows :]
        self._row += len(rows)
        self._block = rest if len(rest) else next(self._blocks, None)
        # The end of a file is reported with its last rows: after them it may be deleted.
        self._end_file()
        return self._batch(now, rows)

    def next_due(self) -> float | None:
        if self._block is not None or self._waiting or self._late:
            return 0.0
        ended = not self._options.follow and not self._unsettled
        return None if ended else self._look_at

    def close(self) -> None:
        if hasattr(self._blocks, "close"):
            self._blocks.close()

    def check(self) -> None:
        """Checks the first file.

        Raises:
            UserError: Its format is unknown, or it lacks a column.
        """
        first = min(self._folder.files(), key=lambda file: file.key, default=None)
        if first is not None and first.size:
            self._open(self._folder.path / first.name)

    def _look(self, now: float) -> None:
        """Looks for new files, if it is time to."""
        if now < self._look_at or self._block is not None or self._waiting:
            return
        self._look_at = now + self._options.interval
        found = list(self._folder.files())
        self._tell_late({file.name for file in found if self._finished.below(file.key)})
        new = [file for file in found if file.key not in self._finished]
        self._waiting = self._folder.complete(new, now)
        self._unsettled = len(self._waiting) < len(new)

    def _tell_late(self, below: set[str]) -> None:
        """Notes files with a place among those that were read long ago: nobody could tell them apart later."""
        if self._below is not None:
            self._late = sorted(below - self._below)
        self._below = below

    def _not_read(self) -> list[Mapping[str, Any] | str]:
        what = "modification time" if self._options.order == "time" else "name"
        reason = f"the file was not read: its {what} lies before that of {self._options.remember} files read already"
        names, self._late = self._late, []
        return [Malformed(name, reason) for name in names]

    def _begin(self, found: FoundFile, row: int) -> None:
        self._file, self._row = found, row
        self._blocks = self._read(found, row)
        self._block = next(self._blocks, None)
        self._end_file()

    def _end_file(self) -> None:
        if self._block is None and self._file is not None:
            sunk = self._finished.add(self._file.key)
            if self._below is not None:
                self._below.update(sunk)
            self._file, self._row = None, 0

    def _batch(self, now: float, rows: Block) -> Batch:
        position = self._finished.position() | {
            "file": None if self._file is None else self._file.name,
            "row": self._row,
            "size": 0 if self._file is None else self._file.size,
        }
        due = self.next_due()
        more = due is not None and due <= now
        return Batch(rows, np.full(len(rows), round(now * 1e6), np.int64), position, more=more)

    def _read(self, found: FoundFile, row: int) -> Iterator[Block]:
        """The blocks of a file. If it cannot be read (any further), a dead letter ends it."""
        path = self._folder.path / found.name
        if not path.exists():
            _LOGGER.warning("file %s went away before it was read", path)
        if not found.size or not path.exists():
            return
        try:
            rows = self._open(path)
            for block in rows.blocks(row):
                yield block if isinstance(rows, JsonRows) else self._named(block, rows.columns)
        except Exception as error:
            # Whatever a file holds, it must not keep the next one from being read.
            cause = error.__context__ if isinstance(error, UserError) else error
            if isinstance(cause, OSError) and cause.errno is not None and cause.errno not in OWN_FAULTS:
                raise
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            yield [Malformed(found.name, f"the file cannot be read: {reason}")]

    def _open(self, path: Path) -> CsvRows | ParquetRows | JsonRows:
        kind = self._options.format or self._format(path)
        if kind == "json":
            return JsonRows(path, self._mapping, any(map(pa.types.is_decimal, self._stream.schema.types)))
        rows = CsvRows(path) if kind == "csv" else ParquetRows(path)
        missing = {name: source for name, source in self._mapping.items() if source not in rows.columns}
        if missing:
            raise UserError(
                f"file {path} has no column {', '.join(map(repr, missing.values()))} (its columns: "
                f"{', '.join(rows.columns)}): set {', '.join(f'columns.{name}' for name in missing)}"
            )
        return rows

    def _format(self, path: Path) -> Format:
        suffixes = [suffix.lower() for suffix in path.suffixes]
        if suffixes[-1:] == [".gz"]:
            suffixes.pop()
        kind = _SUFFIXES.get(suffixes[-1]) if suffixes else None
        if kind is None:
            raise UserError(f"file {path} must end in {', '.join(_SUFFIXES)}: set format, or a pattern without it")
        return kind

    def _named(self, block: pa.Table, columns: Sequence[str]) -> Block:
        """The stream's columns; row by row if some lines have no columns."""
        table = pa.table({name: block.column(source) for name, source in self._mapping.items()})
        lines = block.column(MALFORMED)
        if lines.null_count == len(lines):
            return table
        return [
            row if line is None else Malformed(line, why_malformed(line, columns))
            for row, line in zip(table.to_pylist(), lines.to_pylist(), strict=True)
        ]


KINDS: Final = {"files": (FilesOptions, FilesSource)}
