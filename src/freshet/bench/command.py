"""``freshet bench``: one subcommand for each benchmark of the registry."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from freshet.bench.machine import conditions
from freshet.bench.registry import Bench, benches
from freshet.bench.stage import open_stage, silent_stdout
from freshet.model.places import check_local

_JSON: Final = inspect.Parameter(
    "as_json",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")],
)
_FOLDER: Final = inspect.Parameter(
    "folder",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        Path | None, typer.Option(help="Where to write, on the disk to be measured (default: temporary files).")
    ],
)


def run_bench(bench: Bench, *, as_json: bool = False, folder: Path | None = None, **options: Any) -> None:
    """Runs a benchmark and prints its result: only the result on standard output, everything else on standard error."""
    check_local(folder, "--folder")
    with silent_stdout(), open_stage(folder) as stage:
        machine = conditions(stage.folder)
        began = time.monotonic()
        result = bench.run(stage, **options)
        took = {"seconds": round(time.monotonic() - began, 1), "options": options}
        result = replace(result, conditions={**result.conditions, **took, **machine})
    if as_json:
        print(result.json(bench.name), flush=True)
    else:
        Console(file=sys.stdout).print(result.table(bench.name))


def command_of(bench: Bench) -> Callable[..., None]:
    """The function that typer sees: it has the benchmark's options and the common ones."""

    def call(**options: Any) -> None:
        run_bench(bench, **options)

    own = list(inspect.signature(bench.run, eval_str=True).parameters.values())[1:]
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    call.__signature__ = inspect.Signature([*keywords, _JSON, _FOLDER])  # type: ignore[attr-defined]
    call.__doc__ = f"{bench.summary}\n\n{inspect.getdoc(bench.run) or ''}\n\nTakes {bench.takes}."
    return call


app = typer.Typer(
    help="Measure Freshet on this machine; each benchmark compares like with like and says how.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _bench() -> None:
    """A callback keeps subcommands even if there is only one."""


for _name, _each in benches().items():
    app.command(_name, short_help=f"{_each.summary} Takes {_each.takes}.")(command_of(_each))
