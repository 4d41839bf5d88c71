"""``freshet report``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from freshet.app.reports.report import history_path
from freshet.model import UserError

if TYPE_CHECKING:
    from freshet.quality.history import HistoryRecord


def report(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A report.json, or the history beside it.", show_default=False)
    ],
    page: Annotated[Path | None, typer.Argument(hidden=True, show_default=False)] = None,
    *,
    html: Annotated[
        bool, typer.Option("--html", help="Write a page with the course of the run, instead of a table.")
    ] = False,
    to: Annotated[
        Path | None, typer.Option(metavar="PATH", help="File of the page; by default FILE with .html.")
    ] = None,
) -> None:
    """Show the report of a run: its table as it stood when the report was written.

    With --html it writes one page for a browser that needs nothing else: for each query its freshness, the age of its
    answers, its QoS and its queue over time, with the decisions of the policy beside them. It takes them from the
    history that a run keeps beside its report (report.history.json). A simulated run's history gives the same page.

    Examples: freshet report report.json; freshet report report.json --html --to night.html
    """
    if page is not None:
        raise UserError(f"for a page in a file of another name write: freshet report {file} --html --to {page}")
    if to is not None and not html:
        raise UserError("--to is for --html: use both")
    if html:
        from freshet.pages import run_page

        target = to or file.with_suffix(".html")
        try:
            target.write_text(run_page(_history(file)), encoding="utf-8")
        except OSError as error:
            raise UserError(f"{target}: {error.strerror}") from None
        typer.echo(f"page: {target}")
        return
    from rich.console import Console

    from freshet.cli.live import table

    told = _read(file)
    if not isinstance(told.get("total"), dict) or "workers" not in told:
        raise UserError(f"{file}: this is no report of a run (freshet run writes one: report.json)")
    Console().print(table(cast(Any, told), height=len(told["queries"]) + 20))


def _history(file: Path) -> HistoryRecord:
    """The history that a file is, or that lies beside a report."""
    told = _read(file)
    if "times" not in told:
        if "total" not in told:
            raise UserError(f"{file}: this is neither the report of a run nor its history")
        beside = history_path(file)
        if not beside.exists():
            raise UserError(f"{file}: its history is not there ({beside.name} lies beside the report of a run)")
        told = _read(beside)
    if not {"format", "app", "queries", "machine", "decisions", "marks"} <= told.keys():
        raise UserError(f"{file}: this is no history of a run")
    return cast("HistoryRecord", told)


def _read(file: Path) -> dict[str, Any]:
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{file}: this is no JSON") from None
    if not isinstance(told, dict):
        raise UserError(f"{file}: this is no report of a run")
    return told
