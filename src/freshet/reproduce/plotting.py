"""What the plots of all papers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from freshet.model import UserError
from freshet.reproduce.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Figures = Mapping[str, tuple[str, Callable[["Axes", Trial], None]]]
"""By the name of a figure its title and who draws it."""


def draw_all(trial: Trial, folder: Path, paper: str, figures: Figures) -> None:
    """Writes a file for each figure, such as ``fas_fig3.png``."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("plots need matplotlib: install freshet[plot]") from None
    mode = "quick mode: scaled-down workload" if trial.quick else "full mode: the paper's size"
    for name, (title, draw) in figures.items():
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        draw(axes, trial)
        axes.set_title(f"{title}\n{mode}, mean and range of {len(trial.seeds)} seeds", fontsize=11)
        axes.grid(alpha=0.3)
        axes.legend()
        figure.savefig(folder / f"{paper}_{name}.png", dpi=120)


def line(axes: Axes, places: Sequence[float], values: Sequence[Sequence[float]], label: str, **style: Any) -> None:
    """Means over the seeds with bars for their range."""
    means = [sum(each) / len(each) for each in values]
    # The mean of equal numbers may differ from them in the last digit.
    below = [max(0.0, mean - min(each)) for mean, each in zip(means, values, strict=True)]
    above = [max(0.0, max(each) - mean) for mean, each in zip(means, values, strict=True)]
    axes.errorbar(places, means, yerr=[below, above], label=label, capsize=3, **style)
