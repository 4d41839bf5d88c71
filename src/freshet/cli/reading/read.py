"""``freshet read``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from freshet.cli.reading.forms import ReadForm, print_tables

if TYPE_CHECKING:
    import pyarrow as pa

    from freshet.log import LogReader

ROWS: Final = 65_536
"""Maximum number of tuples that are read at once."""
WAIT: Final = 0.2
"""Seconds between two checks whether an application has started."""


EXAMPLES: Final = """\b
Examples:
  freshet read app.toml hot                            everything that is kept, oldest first
  freshet read app.toml hot --last 10                  the newest ten
  freshet read app.toml hot --last 10 --follow         the newest ten, then whatever comes
  freshet read app.toml hot --since "5 min"            what came in during the last five minutes
  freshet read app.toml hot --since "2026-01-31 12:00" --as csv > hot.csv
  freshet read app.toml hot --as jsonl --limit 10      the oldest ten, for a program
  freshet read state hot --as arrow > hot.arrows       from the state folder, without the file
  freshet read app.toml hosts                          a table
  freshet read app.toml hot --missing                  what its answers lack, and why
  freshet read app.toml speeds --instances             the releases of a PERIOD query, and what came of each
"""


@dataclass(frozen=True, slots=True)
class WantedRows:
    """Which tuples to print: where to begin, how many at most, and whether to continue as new ones come."""

    first: int | None = None
    last: int | None = None
    since: str | None = None
    limit: int | None = None
    follow: bool = False

    def given(self) -> list[str]:
        """The options that say where to begin, as a person wrote them."""
        told = (("--from", self.first), ("--last", self.last), ("--since", self.since))
        return [option for option, value in told if value is not None]


def read(
    app: Annotated[
        Path, typer.Argument(metavar="APP", help="The application file, or its state folder.", show_default=False)
    ],
    query: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of a query, a stream or a table.", show_default=False)
    ],
    last: Annotated[
        int | None, typer.Option("--last", metavar="N", min=0, help="Begin with the newest N tuples.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help='Only tuples that came in since then: "5 min" ago, or a time such as "2026-01-31 12:00" (UTC, if it '
            "names no zone).",
        ),
    ] = None,
    first: Annotated[
        int | None, typer.Option("--from", metavar="OFFSET", min=0, help="Begin at this offset of the log.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=0, help="Print at most N tuples, then stop.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue as new tuples come, until Ctrl-C.")] = False,
    missing: Annotated[
        bool, typer.Option("--missing", help="Print what the answers of a query lack, instead of its answers.")
    ] = False,
    instances: Annotated[
        bool, typer.Option("--instances", help="Print the releases of a PERIOD query, instead of its answers.")
    ] = False,
    form: Annotated[
        ReadForm,
        typer.Option("--as", help="table for people; jsonl or csv for programs; arrow is an Arrow IPC stream, binary."),
    ] = ReadForm.table,
) -> None:
    """Read what a query has answered, a stream, or a table.

    It works while the application runs and afterwards. It only reads the log: it needs no Spark, takes no lock, and
    the running application does not notice it.

    It prints all tuples that are kept, oldest first. --last, --since and --from begin later; --limit and --follow go
    with each of them. A tuple came in when it arrived at Freshet, and an answer when its newest tuple did. For a table
    it prints the present rows.

    With --missing it prints the ledger: for each range of an input, how many of its tuples are missing in the answers
    of a query, why, and by which rule others were kept.

    With --instances it prints each release of a PERIOD query: when its answer was due and when it came, where it lies
    in the output, what was kept for it, and what it is worth.
    """
    from freshet.app.running.followers import following
    from freshet.log import LogReader

    wanted = WantedRows(first, last, since, limit, follow)
    _check_options(wanted)
    state, declared = state_of(app)
    counted = following(state, query) if follow and not (missing or instances) else nullcontext()
    with LogReader(state) as reader, suppress(KeyboardInterrupt), counted:  # the way to end --follow
        if missing or instances:
            _print_entries(reader, query, app, declared, wanted, form, "--missing" if missing else "--instances")
            return
        waited = _check_stream(reader, query, app, declared, follow)
        if query not in reader.streams():
            _check_table_options(query, app, wanted)
            print_tables(_rows(reader, query, limit), form)
            return
        if not waited:
            _tell_of_nothing(reader, query, app, wanted)
        if not print_tables(_tables(reader, query, wanted), form) and since is not None:
            _tell_the_newest(reader, query, app)


def _print_entries(
    reader: LogReader, query: str, app: Path, declared: frozenset[str], wanted: WantedRows, form: ReadForm, what: str
) -> None:
    """Prints what the store knows of the answers of a query: the ledger, or instances."""
    from freshet.cli.reading.instances import instances_table
    from freshet.cli.reading.missing import missing_table
    from freshet.model import UserError

    _check_stream(reader, query, app, declared, follow=False)
    wrong = [*wanted.given(), *(["--follow"] if wanted.follow else [])]
    if wrong:
        raise UserError(f"{app}: {what} shows everything that is known of {query}: leave {wrong[0]} out")
    if query not in reader.streams() or reader.kind(query) != "output":
        raise UserError(f"{app}: {query} is not a query, and only queries have answers")
    if what == "--missing":
        entries = [entry for entry in reader.ledger() if entry.query == query]
        table, nothing = missing_table(entries), f"nothing is missing in the answers of {query}"
    else:
        found = [each for each in reader.instances() if each.query == query]
        table, nothing = instances_table(found), f"{query} has had no release (only queries with a PERIOD have some)"
    if not table.num_rows:
        print(f"{app}: {nothing}", file=sys.stderr)
    print_tables(iter([table.slice(0, wanted.limit)]), form)


def _check_options(wanted: WantedRows) -> None:
    from freshet.model import UserError

    given = wanted.given()
    if len(given) > 1:
        raise UserError(f"{' and '.join(given)} each say where to begin: give only one of them")
    if wanted.since is not None:
        _moment(wanted.since)  # reports a wrong time before anything is read


def _moment(text: str) -> int:
    """Microseconds since the epoch of a time, or of the moment a duration ago."""
    from freshet.model import UserError, parse_duration

    with suppress(UserError):
        return int((time.time() - parse_duration(text)) * 1e6)
    try:
        told = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(
            f"--since {text!r} is neither a duration, such as '5 min', nor a time, such as '2026-01-31 12:00'"
        ) from None
    return int((told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp() * 1e6)


def _tell_of_nothing(reader: LogReader, name: str, app: Path, wanted: WantedRows) -> None:
    """Says on standard error why nothing will be printed, if that is known before reading."""
    from freshet.cli.reading.nothing import why_nothing

    end = reader.end(name)
    if wanted.limit == 0 or wanted.last == 0:
        return
    if reader.oldest(name) == end:
        print(f"{app}: {why_nothing(reader, name, app)}", file=sys.stderr)
    elif wanted.first is not None and wanted.first > end:
        print(f"{app}: {name} ends at offset {end}, before {wanted.first}", file=sys.stderr)


def _tell_the_newest(reader: LogReader, name: str, app: Path) -> None:
    """Says on standard error that no tuple is new enough."""
    from freshet.cli.reading.nothing import time_text

    end = reader.end(name)
    if reader.oldest(name) < end:
        newest = time_text(reader.arrival(name, end - 1))
        print(f"{app}: {name} has no rows that came in since then; the newest came in at {newest}", file=sys.stderr)


def state_of(path: Path) -> tuple[Path, frozenset[str]]:
    """The state folder, and what the file declares: streams, tables, queries (nothing, if given a state folder)."""
    from freshet.app.declared.file import read_leniently
    from freshet.model import UserError

    if path.is_dir():
        return path, frozenset()
    # Other mistakes in the file do not matter to a reader.
    file = read_leniently(path).file
    state = path.parent / file.app.state
    if not state.exists():
        raise UserError(f"{path} has not run yet: its state folder {state} holds no log; start it with freshet run")
    return state, frozenset(file.streams) | frozenset(file.tables) | frozenset(file.queries)


def _check_stream(reader: LogReader, name: str, app: Path, declared: frozenset[str], follow: bool) -> bool:
    """Refuses an unknown name. With ``follow`` it waits for a name that is declared but not in the log yet.

    Returns:
        Whether it waited.
    """
    from freshet.app.declared.problems import did_you_mean
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
    return told


def _names(reader: LogReader) -> list[str]:
    from freshet.model import version_stream

    shown = [stream for stream in reader.streams() if reader.kind(stream) in ("stream", "output", "versions")]
    return [stream.removeprefix(version_stream("")) for stream in shown]


def _check_table_options(table: str, app: Path, wanted: WantedRows) -> None:
    from freshet.model import UserError

    wrong = [*wanted.given(), *(["--follow"] if wanted.follow else [])]
    if wrong:
        raise UserError(f"{app}: {table} is a table, and read shows its present rows: leave {wrong[0]} out")


def _rows(reader: LogReader, table: str, limit: int | None) -> Iterator[pa.Table]:
    """The newest version of a table."""
    from freshet.log import newest_version

    rows = newest_version(reader, table)
    if rows is not None:
        yield rows.slice(0, limit)


def _tables(reader: LogReader, stream: str, wanted: WantedRows) -> Iterator[pa.Table]:
    from freshet.model import ARRIVAL

    left = sys.maxsize if wanted.limit is None else wanted.limit
    since = None if wanted.since is None else _moment(wanted.since)
    at = _begin(reader, stream, wanted)
    while left > 0:
        end = min(reader.end(stream), at + (ROWS if since is not None else min(left, ROWS)))
        if end > at:
            rows = _since(reader.read(stream, at, end), since).slice(0, left)
            yield rows.drop_columns([ARRIVAL])
            left -= rows.num_rows
            at = end
        elif not wanted.follow:
            return
        else:
            reader.wait(stream, at)


def _begin(reader: LogReader, stream: str, wanted: WantedRows) -> int:
    if wanted.first is not None:
        return wanted.first
    oldest = reader.oldest(stream)
    return oldest if wanted.last is None else max(oldest, reader.end(stream) - wanted.last)


def _since(rows: pa.Table, since: int | None) -> pa.Table:
    """The rows that came in since then. Answers are not always in the order of their arrivals, so it looks at
    all of them."""
    import pyarrow.compute as pc

    from freshet.model import ARRIVAL

    return rows if since is None else rows.filter(pc.greater_equal(rows[ARRIVAL], since))
