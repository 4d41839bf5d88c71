"""``freshet mirror budget``."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from freshet.cli.check import AppPath

if TYPE_CHECKING:
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
    plot: Annotated[Path | None, typer.Option(help="Draw a picture in this file, as PNG.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures.")] = False,
) -> None:
    """Show how fresh mirrors would be with more budget, or with less.

    It uses the change rates that polls have told so far, so run the application before.
    """
    from freshet.cli.mirrors.known import known_mirrors
    from freshet.mirror.curve import budget_curve, budget_for
    from freshet.model import UserError
    from freshet.sources.mirror.remembered import remembered_elements

    if plot is not None and not plot.absolute().parent.is_dir():
        raise UserError(f"{plot.parent}: there is no such folder for the picture")
    curves: dict[str, BudgetCurve] = {}
    for known in known_mirrors(app, mirror):
        if not known.records:
            raise UserError(f"nothing is known of mirror {known.name} yet: run the application first")
        elements = remembered_elements(known.options, known.records, known.learned)
        points = budget_curve(elements, [known.options.rate * factor for factor in FACTORS])
        now = points[len(FACTORS) // 2]
        enough = budget_for(elements, ENOUGH * now.perceived, most=now.budget)
        curves[known.name] = BudgetCurve(points, now, enough, known.unit)
        if not as_json:
            print("\n".join(_lines(known.name, curves[known.name])))
    if as_json:
        told = {name: [asdict(point) for point in curve.points] for name, curve in curves.items()}
        print(json.dumps(told, indent=2))
    if plot is not None:
        save(plot, curves)


@dataclass(frozen=True, slots=True)
class BudgetCurve:
    """What budgets buy a mirror: some of them, the present one, and the least that buys most of what that does."""

    points: list[BudgetPoint]
    now: BudgetPoint
    enough: float
    unit: str


def _lines(name: str, curve: BudgetCurve) -> list[str]:
    rows = [
        f"  {point.budget:>12,.4g} {curve.unit}  {point.perceived:6.1%} fresh{'  (now)' if point is curve.now else ''}"
        for point in curve.points
    ]
    least = f"  {curve.enough:,.4g} {curve.unit} would buy {ENOUGH:.0%} of the present freshness"
    return [f"mirror {name}: perceived freshness by budget", *rows, least]


def save(path: Path, curves: dict[str, BudgetCurve]) -> None:
    """Draws perceived freshness by budget, a line for each mirror, and marks the present budget and what is enough."""
    from freshet.plots import COLOURS, DOTS, PlotPoint, draw_line, label_ends, new_figure, plain_numbers

    figure = new_figure(8.0, 4.5)
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.set_xlabel(f"budget ({', '.join(dict.fromkeys(curve.unit for curve in curves.values()))})")
    axes.set_ylabel("perceived freshness")
    ends = []
    for number, (name, curve) in enumerate(curves.items()):
        drawn = [PlotPoint.of(point.budget, [point.perceived]) for point in curve.points]
        draw_line(axes, drawn, number)
        ends.append((name, drawn[-1], number))
        for place, label in ((curve.enough, f"{ENOUGH:.0%}"), (curve.now.budget, "now")):
            axes.axvline(place, color=COLOURS[number], linestyle=":")
            axes.annotate(label, (place, 0.02), (-3, 0), textcoords="offset points", ha="right", color=COLOURS[number])
    title = f"the present budget, and the least that buys {ENOUGH:.0%} of its freshness"
    axes.set_ylim(0.0, 1.03)
    plain_numbers(axes)
    if len(curves) == 1:
        (curve,) = curves.values()
        axes.set_xticks([point.budget for point in curve.points])
        title = f"{curve.enough:,.3g} {curve.unit} would buy {ENOUGH:.0%} of the present freshness"
    axes.set_title(title, loc="left", fontsize=11)
    label_ends(axes, ends)
    figure.savefig(path, format="png", dpi=DOTS)
