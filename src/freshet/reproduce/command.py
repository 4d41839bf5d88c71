"""``freshet reproduce``: the published claims, measured again on this machine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from freshet.model import UserError
from freshet.reproduce.page import page_of
from freshet.reproduce.registry import chosen, papers, run, split_name
from freshet.reproduce.table import band, table_of

WIDE: Final = 130
"""Columns of the table at least, also in a file: in fewer it would lose its last column, which says what holds."""


def reproduce(
    paper: Annotated[str | None, typer.Argument(help="The paper, such as `fas`, or a claim with it in front.")] = None,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[CLAIM]", help="Only this claim, such as `fig3.gain-at-0.1`, or those of `fig3`."),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Measure the claims of all papers.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Name every claim and its band; measure nothing.")] = False,
    quick: Annotated[bool, typer.Option("--quick/--full", help="Scaled down (minutes), or the paper's size.")] = True,
    plots: Annotated[Path | None, typer.Option(help="Folder for PNGs that mirror the paper's figures.")] = None,
    html: Annotated[Path | None, typer.Option(help="File for one page with the table and all plots in it.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Number of repetitions with other draws.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes to use.")] = 1,
    keep: Annotated[
        Path | None,
        typer.Option(help="Folder of results, from which an interrupted run goes on."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
) -> None:
    """Measure the claims of a paper and say which hold.

    `freshet reproduce fas` measures all claims of a paper, `freshet reproduce fas fig3` those of a figure, `freshet
    reproduce fas fig3.gain-at-0.1` (or `fas.fig3.gain-at-0.1`) one, `freshet reproduce --all --html page.html` all
    papers. Checks (identities, and figures by which constants were set)
    are measured, too, but not counted as claims.

    The exit code is 1 if a claim or a check was measured and lies outside its band.
    """
    if paper is not None:
        paper, name = split_name(paper, name)
    names = _papers(paper, all_=all_, list_=list_)
    if list_:
        _list(names, name, as_json)
        return
    if html is not None:
        _make_place(html)
    with TemporaryDirectory() as scratch:
        # A page of one claim has no plots: they would take all runs of the paper.
        folder = plots or (Path(scratch) if html is not None and name is None else None)
        results = [_measure(each, name, quick=quick, plots=folder, seeds=seeds, jobs=jobs, keep=keep) for each in names]
        if html is not None:
            html.write_text(page_of(results, folder or Path(scratch)))
    if as_json:
        typer.echo(json.dumps({"papers": results} if all_ else results[0]))
    else:
        Console(width=max(WIDE, Console().width)).print(table_of(results))
    if any(each["ok"] is False for result in results for each in result["claims"]):
        raise typer.Exit(1)


def _make_place(page: Path) -> None:
    """Makes the folder of a page, and refuses a place that cannot be written before hours of measuring.

    Raises:
        UserError: No page can be written there.
    """
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--html {page}: {error.strerror}") from None
    if page.is_dir() or not os.access(page if page.exists() else page.parent, os.W_OK):
        raise UserError(f"--html {page}: {'it is a folder' if page.is_dir() else 'it cannot be written'}")


def _papers(paper: str | None, *, all_: bool, list_: bool) -> list[str]:
    if all_ and paper is not None:
        raise UserError(f"--all measures all papers: leave out {paper!r}")
    if all_ or (list_ and paper is None):
        return list(papers())
    if paper is None:
        raise UserError(f"say which paper: {', '.join(papers())} (or --all, or --list)")
    return [paper]


def _measure(
    paper: str, name: str | None, *, quick: bool, plots: Path | None, seeds: int | None, jobs: int, keep: Path | None
) -> dict[str, Any]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.completed} runs"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("begin", total=None)
        return run(
            paper,
            name,
            quick=quick,
            plots_dir=plots,
            seeds=seeds,
            jobs=jobs,
            keep=keep,
            ran=lambda: progress.advance(task),
            began=lambda text: progress.update(task, description=text),
        )


def _list(names: list[str], only: str | None, as_json: bool) -> None:
    every = [claim.describe() for name in names for claim in chosen(name, only)]
    if as_json:
        typer.echo(json.dumps({"claims": every}))
        return
    for each in every:
        check = "a check, not counted; " if each["kind"] == "check" else ""
        typer.echo(f"{each['id']}  ({each['source']})")
        typer.echo(f"    {check}published: {each['published']}; accepted: {band(each)}")
        typer.echo(f"    {each['how']}")
