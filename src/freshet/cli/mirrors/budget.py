"""``freshet mirror budget``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from freshet.cli.check import AppPath

if TYPE_CHECKING:
    from freshet.mirror import Elements
    from freshet.mirror.curve import BudgetPoint

EXAMPLES: Final = """\b
Examples:
  freshet mirror budget app.toml
  freshet mirror budget app.toml prices --plot budget.png
"""
FACTORS: Final = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16)
"""Budgets that are shown, as multiples of the present one."""
ENOUGH: Final = 0.95


def budget(
    app: AppPath,
    mirror: Annotated[str | None, typer.Argument(help="One stream or table; all mirrors if left out.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw a picture in this file, such as budget.png.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures.")] = False,
) -> None:
    """Show how fresh mirrors would be with more budget, or with less.

    It uses the change rates that polls have told so far, so run the application before.
    """
    from freshet.cli.mirrors.known import known_mirrors
    from freshet.mirror.curve import budget_curve
    from freshet.model import UserError
    from freshet.sources.mirror.remembered import remembered_elements

    curves: dict[str, list[BudgetPoint]] = {}
    units: dict[str, str] = {}
    for known in known_mirrors(app, mirror):
        if not known.records:
            raise UserError(f"nothing is known of mirror {known.name} yet: run the application first")
        elements = remembered_elements(known.options, known.records, known.learned)
        curves[known.name] = budget_curve(elements, [known.options.rate * factor for factor in FACTORS])
        units[known.name] = known.unit
        if not as_json:
            print("\n".join(_lines(known.name, curves[known.name], units[known.name], elements)))
    if as_json:
        told = {name: [asdict(point) for point in points] for name, points in curves.items()}
        print(json.dumps(told, indent=2))
    if plot is not None:
        save(plot, curves, units)


def _lines(name: str, points: list[BudgetPoint], unit: str, elements: Elements) -> list[str]:
    from freshet.mirror.curve import budget_for

    present = points[len(FACTORS) // 2]
    rows = [
        f"  {point.budget:>12,.4g} {unit}  {point.perceived:6.1%} fresh{'  (now)' if point is present else ''}"
        for point in points
    ]
    enough = budget_for(elements, ENOUGH * present.perceived, most=present.budget)
    least = f"  {enough:,.4g} {unit} would buy {ENOUGH:.0%} of the present freshness"
    return [f"mirror {name}: perceived freshness by budget", *rows, least]


def save(path: Path, curves: dict[str, list[BudgetPoint]], units: dict[str, str]) -> None:
    """Draws perceived freshness by budget, a line for each mirror."""
    from freshet.plots import DOTS, PlotPoint, draw_line, label_ends, new_figure, plain_numbers

    figure = new_figure(7.0, 4.0)
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.set_xlabel(f"budget ({', '.join(dict.fromkeys(units.values()))})")
    axes.set_ylabel("perceived freshness")
    ends = []
    for number, (name, points) in enumerate(curves.items()):
        drawn = [PlotPoint.of(point.budget, [point.perceived]) for point in points]
        draw_line(axes, drawn, number)
        ends.append((name, drawn[-1], number))
    axes.set_ylim(0.0, 1.0)
    plain_numbers(axes)
    label_ends(axes, ends)
    figure.savefig(path, dpi=DOTS)
