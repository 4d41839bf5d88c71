"""What the plots of all papers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from freshet.plots import COLOURS, DOTS, MARKERS, PlotPoint, draw_line, label_ends, new_figure, plain_numbers
from freshet.reproduce.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PlotTable = Mapping[str, tuple[str, Callable[["Axes", Trial], None]]]
"""The title of each figure and the function that draws it, by the name of the figure."""
PUBLISHED: Final = 6
"""Number of the colour and the marker of published points."""


def draw_all(trial: Trial, folder: Path, paper: str, figures: PlotTable) -> None:
    """Writes a file for each figure, such as ``fas_fig3.png``."""
    mode = "quick mode: scaled-down workload" if trial.quick else "full mode: the paper's size"
    for name, (title, draw) in figures.items():
        figure = new_figure(8, 4.5)
        axes = figure.add_subplot()
        head = f"{title}\n{mode}"
        axes.set_title(head, loc="left", fontsize=11)
        draw(axes, trial)
        if axes.get_title("left") == head:  # no lines were drawn, but points
            axes.set_title(f"{head}, mean of {len(trial.seeds)} seeds", loc="left", fontsize=11)
        figure.savefig(folder / f"{paper}_{name}.png", dpi=DOTS)


def draw_lines(axes: Axes, places: Sequence[float], lines: Mapping[str, Sequence[Sequence[float]]]) -> None:
    """Draws a line for each label: means over the seeds with a band for their range. The title says so; if all seeds
    give the same, because nothing is drawn at random, it says that. Call it last.
    """
    drawn = {label: list(map(PlotPoint.of, places, values)) for label, values in lines.items()}
    for number, points in enumerate(drawn.values()):
        draw_line(axes, points, number)
    seeds = max(len(values) for line in lines.values() for values in line)
    if any(point.low < point.high for points in drawn.values() for point in points):
        told = f", mean of {seeds} seeds (band: their range)"
    else:
        told = f", the same with each of {seeds} seeds" if seeds > 1 else ""
    axes.set_title(axes.get_title("left") + told, loc="left", fontsize=11)
    plain_numbers(axes)
    if axes.get_xscale() == "log":
        axes.set_xticks(places)
    label_ends(axes, [(label, points[-1], number) for number, (label, points) in enumerate(drawn.items())])


def mark(
    axes: Axes,
    place: float,
    value: float,
    label: str,
    number: int = PUBLISHED,
    side: Literal["center", "left"] = "center",
) -> None:
    """Draws one point with its label below, or below on its right: ``left`` is where the text begins."""
    colour = COLOURS[number]
    axes.margins(y=0.1)
    axes.scatter(place, value, color=colour, marker=MARKERS[number])
    axes.annotate(
        label,
        (place, value),
        (0 if side == "center" else 9, -7),
        textcoords="offset points",
        ha=side,
        va="top",
        color=colour,
    )
