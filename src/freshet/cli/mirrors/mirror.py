"""``freshet mirror``: what is known of the mirrors of an application."""

from __future__ import annotations

import typer

from freshet.cli.mirrors.budget import EXAMPLES as BUDGET
from freshet.cli.mirrors.budget import budget
from freshet.cli.mirrors.rates import EXAMPLES as RATES
from freshet.cli.mirrors.rates import rates

mirror = typer.Typer(
    name="mirror",
    help="What is known of the mirrors of an application.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
mirror.command(epilog=RATES)(rates)
mirror.command(epilog=BUDGET)(budget)
