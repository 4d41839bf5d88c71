"""``freshet mirror budget``."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from freshet.cli.check import AppPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from freshet.cli.mirrors.known import KnownMirror
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

    It uses the change rates that polls have told so far, so run the application before. Floors are kept. Elements that
    fail are left out.
    """
    from freshet.cli.mirrors.known import known_mirrors
    from freshet.model import UserError

    if plot is not None and not plot.absolute().parent.is_dir():
        raise UserError(f"{plot.parent}: there is no such folder for the picture")
    curves: dict[str, BudgetCurve] = {}
    for known in known_mirrors(app, mirror):
        if not known.records:
            raise UserError(f"nothing is known of mirror {known.name} yet: run the application first")
        curves[known.name] = _curve(known)
        if not as_json:
            print("\n".join(_lines(known.name, curves[known.name])))
    if as_json:
        print(json.dumps({name: asdict(curve) for name, curve in curves.items()}, indent=2))
    if plot is not None:
        save(plot, curves)


@dataclass(frozen=True, slots=True)
class BudgetCurve:
    """What budgets buy a mirror.

    Args:
        points: Some budgets, and what they buy.
        now: The present one.
        enough: The least that buys most of what the present one does.
        unit: The unit of budgets.
        floors_need: What the floors of its elements need; 0: there are none.
        failing: Number of elements that fail, and are left out.
    """

    points: list[BudgetPoint]
    now: BudgetPoint
    enough: float
    unit: str
    floors_need: float = 0.0
    failing: int = 0


def _curve(known: KnownMirror) -> BudgetCurve:
    from freshet.mirror.curve import budget_curve, budget_for
    from freshet.sources.mirror.remembered import RememberedMirror

    mirror, budget = RememberedMirror(known.options, known.records, known.learned), known.options.rate
    elements, floors = mirror.elements, mirror.floors
    points = budget_curve(elements, [budget * factor for factor in FACTORS], floors=floors)
    now = points[len(FACTORS) // 2]
    enough = budget_for(elements, ENOUGH * now.perceived, most=budget, floors=floors)
    needed = 0.0 if floors is None else floors.within(elements, budget)[1]
    return BudgetCurve(points, now, enough, known.unit, needed, mirror.failing)


def _lines(name: str, curve: BudgetCurve) -> list[str]:
    rows = [
        f"  {point.budget:>12,.4g} {curve.unit}  {point.perceived:6.1%} fresh{'  (now)' if point is curve.now else ''}"
        for point in curve.points
    ]
    least = f"  {curve.enough:,.4g} {curve.unit} would buy {ENOUGH:.0%} of the present freshness"
    lines = [f"mirror {name}: perceived freshness by budget", *rows, least]
    if curve.floors_need:
        lines.append(f"  its floors need {curve.floors_need:,.4g} {curve.unit}")
    if curve.failing:
        fails = "element that fails" if curve.failing == 1 else "elements that fail"
        lines.append(f"  without {curve.failing} {fails}")
    return lines


def save(path: Path, curves: dict[str, BudgetCurve]) -> None:
    """Draws perceived freshness by budget, one panel for each mirror, and marks the present budget and what is
    enough."""
    from freshet.plots import DOTS, new_figure

    figure = new_figure(8.0, 4.0 * len(curves) + 0.5)
    panels = figure.subplots(len(curves), squeeze=False)
    for (axes,), (name, curve) in zip(panels, curves.items(), strict=True):
        _draw(axes, name, curve)
    figure.savefig(path, format="png", dpi=DOTS)


def _draw(axes: Axes, name: str, curve: BudgetCurve) -> None:
    from freshet.plots import COLOURS, PlotPoint, draw_line, plain_numbers

    axes.set_xscale("log")
    axes.set_xlabel(f"budget ({curve.unit})")
    axes.set_ylabel("perceived freshness")
    draw_line(axes, [PlotPoint.of(point.budget, [point.perceived]) for point in curve.points], 0)
    for place, label, side in ((curve.enough, f"{ENOUGH:.0%}", "right"), (curve.now.budget, "now", "left")):
        axes.axvline(place, color=COLOURS[0], linestyle=":")
        space = (-3 if side == "right" else 3, 0)
        axes.annotate(label, (place, 0.02), space, textcoords="offset points", ha=side, color=COLOURS[0])
    axes.set_ylim(0.0, 1.03)
    plain_numbers(axes)
    axes.set_xticks([point.budget for point in curve.points])
    title = f"{name}: {curve.enough:,.3g} {curve.unit} would buy {ENOUGH:.0%} of the present freshness"
    axes.set_title(title, loc="left", fontsize=11)
