"""A folder of Parquet files, each row exactly once."""

from __future__ import annotations

import os
import re
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import pyarrow as pa
import pyarrow.parquet
from pydantic import Field

from freshet.log import Exported, hidden_path, write_parquet
from freshet.log.segments.lines import same_file
from freshet.log.segments.storage import sync_path
from freshet.model import UserError
from freshet.sinks.sink import SinkOptions, Token
from freshet.sources.options import Duration, LocalPath

_RANGE: Final = re.compile(r"-(\d+)-(\d+)\.parquet")
_OPEN: Final[set[Path]] = set()
_OPEN_LOCK: Final = threading.Lock()


class ParquetOptions(SinkOptions):
    """Options of the sink kind ``parquet``.

    Args:
        path: The folder of its files; made if needed.
        rows: Maximum number of rows in a file.
        every: Maximum time that rows wait for a file to be full.
        append: Adds files to a folder that already holds Parquet files. Without it such a folder is refused, unless
            this sink itself wrote them: nobody could tell which rows they hold.
        shared: The folder is the same one on all machines of the cluster, so that Spark's executors write its files.
            If Spark runs in this process, they always do.
    """

    path: LocalPath
    rows: int = Field(default=1_000_000, ge=1)
    every: Annotated[Duration, Field(gt=0)] = 60.0
    append: bool = False
    shared: bool = False


class ParquetSink:
    """Writes files of many rows, which any reader of Parquet sees as one table.

    Rows wait in the log until there are enough of them for a file, or some have waited long enough. A file is written
    under a hidden name, by the driver or by a Spark task. Once it is durable, the driver renames it, so that readers
    see only whole files. Its name says who wrote it and which range of the output it holds. So a file that was
    completed just before a crash is recognised, and its rows are not written again. If somebody deletes the folder,
    later files go to a new one, and ``note`` says so.
    """

    def __init__(self, options: ParquetOptions) -> None:
        self.arrival = options.arrival
        self.path: Final = options.path.expanduser().absolute()
        self.most_rows, self.patience = options.rows, options.every
        self._append, self.shared = options.append, options.shared
        self._claimed = False
        self._id = ""
        self._end = 0
        self._columns: pa.Schema | None = None
        self._folder: int | None = None
        self.note: str | None = None

    def open(self, state: Mapping[str, Any]) -> dict[str, Any]:
        self._claim()
        try:
            self._enter()
            why = self.refusal(state)
            if why is not None:
                raise UserError(why)
            self._id = str(state.get("id") or secrets.token_hex(4))
            self._clean()
            ours = self._ours()
        except OSError as error:
            self.close()
            raise UserError(f"folder {self.path} cannot be written to: {error.strerror}") from None
        except UserError:
            self.close()
            raise
        self._end = max(ours, default=0)
        self._columns = _columns(ours[self._end]) if ours else None
        return self._state()

    def refusal(self, state: Mapping[str, Any]) -> str | None:
        """Why it must not write to its folder, given what it kept; None if it may."""
        own = f"{state['id']}-" if "id" in state else None
        if self._append or not self.path.is_dir():
            return None
        strange = [path.name for path in self._files() if own is None or not path.name.startswith(own)]
        if not strange:
            return None
        return (
            f"folder {self.path} holds {min(strange)} already, and this sink did not write it: choose another path, "
            "empty the folder, or set append = true to add files to it"
        )

    def write(self, table: pa.Table, token: Token) -> dict[str, Any]:
        wanted = self.prepare(token)
        if wanted is None:
            return self._state()
        rest, path = wanted
        return self.take(write_parquet(hidden_path(path), [table.slice(rest.first - token.first)]), path, rest)

    def prepare(self, token: Token) -> tuple[Token, Path] | None:
        self._enter()
        first = max(self._end, token.first)
        if first >= token.end:
            return None
        return replace(token, first=first), self.path / f"{self._id}-{first:012}-{token.end:012}.parquet"

    def take(self, made: Exported, path: Path, token: Token) -> dict[str, Any]:
        self._check_columns(made.schema)
        try:
            made.path.rename(path)
        except FileNotFoundError:
            if not self.shared:
                raise
            raise UserError(
                f"an executor wrote {made.path.name}, but it is not in {self.path} here: the folder is not the same "
                "one on all machines, so leave out shared = true, or it was deleted just now"
            ) from None
        sync_path(self.path)
        self._end = token.end
        return self._state()

    def close(self) -> None:
        if self._claimed:
            self._clean()
            with _OPEN_LOCK:
                _OPEN.discard(self.path)
            self._claimed = False
        self._leave()

    def _enter(self) -> None:
        """Makes the folder, also if somebody has deleted it or moved it away."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._leave()
        self._folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def _leave(self) -> None:
        if self._folder is not None:
            if self._end and not same_file(self._folder, self.path):
                self.note = f"folder {self.path} was deleted or replaced: files that were written to it before are gone"
            os.close(self._folder)
            self._folder = None

    def _state(self) -> dict[str, Any]:
        return {"path": str(self.path), "id": self._id}

    def _claim(self) -> None:
        """Claims the folder: two sinks in one folder would take each other's files for strange ones."""
        self.close()
        with _OPEN_LOCK:
            if self.path in _OPEN:
                raise UserError(f"folder {self.path} is written by another sink already: choose another path")
            _OPEN.add(self.path)
        self._claimed = True

    def _files(self) -> Iterator[Path]:
        """What readers of Parquet see."""
        return (path for path in self.path.glob("*.parquet") if not path.name.startswith((".", "_")))

    def _ours(self) -> dict[int, Path]:
        """The files of this sink by the ends of their ranges."""
        found = {}
        for path in self._files():
            match = _RANGE.fullmatch(path.name.removeprefix(self._id))
            if match is not None and path.name.startswith(self._id):
                found[int(match.group(2))] = path
        return found

    def _clean(self) -> None:
        """Throws away incomplete files, such as the file of a task that was late."""
        for path in self.path.glob(f".{self._id}-*.open") if self._id else ():
            with suppress(OSError):
                path.unlink()

    def _check_columns(self, schema: pa.Schema) -> None:
        """Refuses other columns: all files of a folder are one table."""
        known = self._columns
        if known is not None and (known.names, known.types) != (schema.names, schema.types):
            raise UserError(
                f"the files in {self.path} have the columns {', '.join(known.names)} of other types or names than "
                f"the query's {', '.join(schema.names)}: choose another path for them"
            )
        self._columns = schema


def _columns(path: Path) -> pa.Schema:
    return pyarrow.parquet.read_schema(path)


KINDS: Final = {"parquet": (ParquetOptions, ParquetSink)}
