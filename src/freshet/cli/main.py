"""The ``freshet`` command: its subcommands, each in a file of its own, and how errors leave it.

The commands import what is heavy (Spark, Arrow, SQL) inside their functions, so that help and errors come at once.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer

import freshet
from freshet.cli.check import EXAMPLES as CHECK
from freshet.cli.check import check
from freshet.cli.errors import fail
from freshet.cli.explaining.explain import EXAMPLES as EXPLAIN
from freshet.cli.explaining.explain import explain
from freshet.cli.kinds import EXAMPLES as KINDS
from freshet.cli.kinds import kinds
from freshet.cli.policies import EXAMPLES as POLICIES
from freshet.cli.policies import policies
from freshet.cli.reading.read import EXAMPLES as READ
from freshet.cli.reading.read import read
from freshet.cli.run import EXAMPLES as RUN
from freshet.cli.run import run
from freshet.cli.starting import Interrupted
from freshet.cli.verify import EXAMPLES as VERIFY
from freshet.cli.verify import verify

EPILOG = """\b
Examples:
  freshet demo                         a network monitor with 25 queries
  freshet check app.toml               is the file right?
  freshet run app.toml --for 60s       run it for a minute on this machine
  freshet read app.toml hot --follow   the answers of query `hot`, as they come
\b
Exit codes:
  0    all is well
  1    something went wrong while running (a line on standard error says what)
  2    the input is wrong: the file, a query, an argument (one line for each problem)
  130  interrupted by Ctrl-C before the work was done (143: by SIGTERM)
"""

app = typer.Typer(
    name="freshet",
    help="Continuous SQL queries on Spark, scheduled so that the answers that matter stay fresh.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"freshet {freshet.__version__}")
        raise typer.Exit


@app.callback()
def _freshet(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


for command, examples in (
    (run, RUN),
    (check, CHECK),
    (explain, EXPLAIN),
    (read, READ),
    (verify, VERIFY),
    (policies, POLICIES),
    (kinds, KINDS),
):
    app.command(epilog=examples)(command)


def _lazy(name: str, module: str, attribute: str, summary: str) -> None:
    """Registers a command that is imported only when it is called; it answers ``--help`` itself."""

    def call(context: typer.Context) -> Any:
        target = getattr(import_module(module), attribute)
        if not isinstance(target, typer.Typer):
            function, target = (
                target,
                typer.Typer(
                    pretty_exceptions_enable=False,
                    add_completion=False,
                    rich_markup_mode=None,
                    context_settings={"help_option_names": ["-h", "--help"]},
                ),
            )
            target.command()(function)
        target(args=context.args, prog_name=f"freshet {name}")

    settings = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    app.command(name, help=summary, context_settings=settings, add_help_option=False)(call)


_lazy("demo", "freshet.cli.demo", "demo", "See Freshet at work in a story of about a minute; see --list.")
_lazy("calibrate", "freshet.cli.calibrate", "calibrate", "Measure which scheduling strategy suits each query.")
_lazy("mirror", "freshet.cli.mirrors.mirror", "mirror", "See what is known of mirrors; see `freshet mirror --help`.")
_lazy("report", "freshet.cli.report", "report", "Show the report of a run, or make a page of it; see --help.")
_lazy("bench", "freshet.bench", "app", "Measure Freshet on this machine; see `freshet bench --help`.")
_lazy("reproduce", "freshet.reproduce.command", "reproduce", "Measure the claims of the papers again; see --list.")


def main() -> None:
    """Runs the command line; every error is one line on standard error and an exit code."""
    try:
        app()
    except Interrupted as error:
        print(error, file=sys.stderr)
        sys.exit(error.code)
    except Exception as error:
        sys.exit(fail(error))
