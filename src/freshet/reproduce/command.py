"""``freshet reproduce``: the published claims, measured again on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from freshet.model import UserError
from freshet.reproduce.registry import claims, papers, run


def reproduce(
    paper: Annotated[str | None, typer.Argument(help="Short name of the paper, such as `fas`.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="Name every claim and its band; measure nothing.")] = False,
    quick: Annotated[bool, typer.Option("--quick/--full", help="Scaled down (minutes), or the paper's size.")] = True,
    plots: Annotated[Path | None, typer.Option(help="Folder for PNGs that mirror the paper's figures.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Number of repetitions with other draws.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes to use.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
) -> None:
    """Measure the claims of a paper and say which hold.

    The exit code is 1 if a claim was measured and lies outside its band.
    """
    if list_:
        _list([paper] if paper else list(papers()), as_json)
        return
    if paper is None:
        raise UserError(f"say which paper: {', '.join(papers())} (or --list)")
    result = _measure(paper, quick=quick, plots=plots, seeds=seeds, jobs=jobs)
    if as_json:
        typer.echo(json.dumps(result))
    else:
        _show(result)
    if any(each["ok"] is False for each in result["claims"]):
        raise typer.Exit(1)


def _measure(paper: str, *, quick: bool, plots: Path | None, seeds: int | None, jobs: int) -> dict[str, Any]:
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
            quick=quick,
            plots_dir=plots,
            seeds=seeds,
            jobs=jobs,
            ran=lambda: progress.advance(task),
            began=lambda text: progress.update(task, description=text),
        )


def _list(names: list[str], as_json: bool) -> None:
    every = [claim.describe() for name in names for claim in claims(name)]
    if as_json:
        typer.echo(json.dumps({"claims": every}))
        return
    for each in every:
        typer.echo(f"{each['id']}  ({each['source']})")
        typer.echo(f"    published: {each['published']}; accepted: {_band(each)}")
        typer.echo(f"    {each['how']}")


def _show(result: dict[str, Any]) -> None:
    title = f"{result['paper']}, {result['mode']} mode, {result['seeds']} seeds, {result['runs']} runs"
    table = Table(Column("claim", overflow="fold", min_width=34), "published", "ours", "spread", "accepted", "holds")
    table.title = title
    for each in result["claims"]:
        if each["ok"] is None:
            table.add_row(each["id"], str(each["published"]), "", "", _band(each), f"not measured: {each['skipped']}")
            continue
        spread = "{:.3g} to {:.3g}".format(*each["spread"])
        holds = "yes" if each["ok"] else "NO"
        table.add_row(each["id"], str(each["published"]), f"{each['ours']:.3g}", spread, _band(each), holds)
        for text, value in each.get("readings", {}).items():
            table.add_row(f"    {text}", "", f"{value:.3g}", "", "", "")
    Console().print(table)


def _band(claim: dict[str, Any]) -> str:
    low, high = claim["low"], claim["high"]
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    return f"at least {low:g}" if low is not None else f"at most {high:g}"
