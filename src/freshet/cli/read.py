"""``freshet read``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    import pyarrow as pa

    from freshet.log import LogReader

ROWS: Final = 65_536
"""Most tuples that are read at once."""
WAIT: Final = 0.2
"""Seconds between looks at whether an application has started."""


class Form(StrEnum):
    """How tuples are printed."""

    table = "table"
    jsonl = "jsonl"
    arrow = "arrow"


EXAMPLES: Final = """\b
Examples:
  freshet read app.toml hot --follow
  freshet read app.toml hot --as jsonl --limit 10
  freshet read state hot --as arrow > hot.arrows
  freshet read app.toml hosts
"""


def read(
    app: Annotated[Path, typer.Argument(metavar="APP", help="Application file, or state folder.", show_default=False)],
    query: Annotated[str, typer.Argument(help="A query, a stream, or a table.", show_default=False)],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as new tuples come.")] = False,
    form: Annotated[
        Form, typer.Option("--as", help="table for people, jsonl for programs, arrow: an Arrow IPC stream.")
    ] = Form.table,
    first: Annotated[
        int | None, typer.Option("--from", min=0, help="Offset to begin at; the oldest kept, if not given.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Most tuples to print.")] = None,
) -> None:
    """Read the output of a query, or a stream; or the rows of a table as they are now.

    It works while the application runs and after it. It reads the log: no Spark, no lock, and the running application
    does not notice.
    """
    from freshet.log import LogReader

    state, declared = state_of(app)
    with LogReader(state) as reader, suppress(KeyboardInterrupt):  # the way to end --follow
        _check_stream(reader, query, app, declared, follow)
        if query not in reader.streams():
            _check_options(query, app, first, follow)
            _print(_rows(reader, query, limit), form)
            return
        if first is not None and first > (end := reader.end(query)):
            print(f"{app}: {query} ends at offset {end}, before {first}", file=sys.stderr)
        _print(_tables(reader, query, first, limit, follow), form)


def state_of(path: Path) -> tuple[Path, frozenset[str]]:
    """The state folder, and what the file declares: streams, tables, queries (none is known of a state folder)."""
    from freshet.app.file import read_leniently
    from freshet.model import UserError

    if path.is_dir():
        return path, frozenset()
    # What else is wrong in the file does not matter to who reads.
    file = read_leniently(path).file
    state = path.parent / file.app.state
    if not state.exists():
        raise UserError(f"{path} has not run yet: its state folder {state} holds no log; start it with freshet run")
    return state, frozenset(file.streams) | frozenset(file.tables) | frozenset(file.queries)


def _check_stream(reader: LogReader, name: str, app: Path, declared: frozenset[str], follow: bool) -> None:
    """Refuses a name that is not there; one that is declared and still to come is waited for, if asked to follow."""
    from freshet.app.problems import did_you_mean
    from freshet.model import UserError

    told = False
    while name not in (names := _names(reader)):
        if name not in declared:
            known = list(dict.fromkeys([*names, *sorted(declared)]))
            raise UserError(f"{app}: there is no query, stream or table {name!r}{did_you_mean(name, known)}; "
                            f"it has: {', '.join(known) or 'none yet'}")  # fmt: skip
        if not follow:
            raise UserError(
                f"{app}: {name} has nothing to read yet: the application is starting, or has not run since {name} was "
                "added"
            )
        if not told:
            print(f"{app}: {name} has nothing to read yet; waiting for the application to start", file=sys.stderr)
            told = True
        time.sleep(WAIT)


def _names(reader: LogReader) -> list[str]:
    from freshet.model import version_stream
    from freshet.policies.sharing import is_shared

    # Intermediate queues have a dot in their name and are nobody's output, nor is shared work.
    shown = [stream for stream in reader.streams() if "." not in stream and not is_shared(stream)]
    return [stream.removeprefix(version_stream("")) for stream in shown]


def _check_options(table: str, app: Path, first: int | None, follow: bool) -> None:
    from freshet.model import UserError

    if first is not None or follow:
        option = "--follow" if follow else "--from"
        raise UserError(f"{app}: {table} is a table, and its rows as they are now are shown: leave {option} out")


def _rows(reader: LogReader, table: str, limit: int | None) -> Iterator[pa.Table]:
    """The newest version of a table."""
    from freshet.log import newest_version

    rows = newest_version(reader, table)
    if rows is not None:
        yield rows.slice(0, limit)


def _tables(reader: LogReader, stream: str, first: int | None, limit: int | None, follow: bool) -> Iterator[pa.Table]:
    from freshet.model import ARRIVAL

    left = sys.maxsize if limit is None else limit
    at = reader.oldest(stream) if first is None else first
    while left > 0:
        end = min(reader.end(stream), at + min(left, ROWS))
        if end > at:
            yield reader.read(stream, at, end).drop_columns([ARRIVAL])
            left -= end - at
            at = end
        elif not follow:
            return
        else:
            reader.wait(stream, at)


def _print(tables: Iterator[pa.Table], form: Form) -> None:
    if form is Form.arrow:
        _print_arrow(tables)
        return
    from freshet.sinks.rows import json_lines

    columns: list[str] = []
    for table in tables:
        if form is Form.jsonl:
            sys.stdout.writelines(f"{line}\n" for line in json_lines(table))
        else:
            sys.stdout.writelines(f"{line}\n" for line in _cells(table, header=table.column_names != columns))
            columns = table.column_names
        sys.stdout.flush()


def _cells(table: pa.Table, header: bool) -> Iterator[str]:
    columns = [["" if value is None else str(value).replace("\n", " ") for value in column.to_pylist()]
               for column in table.columns]  # fmt: skip
    widths = [max(len(name), 12, *map(len, column)) for name, column in zip(table.column_names, columns, strict=True)]
    if header:
        yield "  ".join(name.ljust(width) for name, width in zip(table.column_names, widths, strict=True)).rstrip()
        yield "  ".join("-" * width for width in widths)
    for row in zip(*columns, strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _print_arrow(tables: Iterator[pa.Table]) -> None:
    import pyarrow as pa

    from freshet.model import UserError

    if sys.stdout.isatty():
        raise UserError("an Arrow stream is binary: write it to a file or a program, as in --as arrow > hot.arrows")
    writer = None
    for table in tables:
        writer = writer or pa.ipc.new_stream(sys.stdout.buffer, table.schema)
        writer.write_table(table)
        sys.stdout.buffer.flush()
    if writer is not None:
        writer.close()
