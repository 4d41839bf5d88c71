"""The picture of ``freshet bench many``, from what its ``--json`` printed.

``python -m freshet.bench.many.plot many.json docs/plots/many.png``
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from freshet.model import UserError
from freshet.plots import DOTS, PlotPoint, draw_line, label_ends, new_figure, plain_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIDES: Final = {
    "freshet": ("Freshet", 0),
    "queries": ("a streaming\nquery for each", 1),
    "foreach": ("one foreachBatch\nfor all", 2),
    "floor": ("floor: NumPy,\nno Spark", 6),
}
"""The label of each side, and the number of its lines."""
PANELS: Final = {
    "mean_s": "seconds from arrival to readable output, mean",
    "cpu_s_per_million": "CPU seconds per million query-rows",
}
_SINKS: Final = ("parquet", "noop")


def draw(document: Mapping[str, Any]) -> Figure:
    """One panel for the time, one for the CPU time; both by number of queries."""
    options = document["conditions"]["options"]
    figure = new_figure(12, 5)
    panels: Any = figure.subplots(1, len(PANELS))
    for axes, (measure, title) in zip(panels, PANELS.items(), strict=True):
        axes.set(xscale="log", yscale="log", xlabel="queries", title=title)
        _lines(axes, document, measure)
    cores = document["conditions"]["cores"]
    figure.suptitle(
        f"Many queries over one stream, {options['rate']:,.0f} rows/s, {cores} cores "
        "(solid: Parquet sinks, dashed: no-op sinks; bands: least to greatest)"
    )
    return figure


def _lines(axes: Axes, document: Mapping[str, Any], measure: str) -> None:
    """Draws the figures of all sides; a side has no point where it never got going."""
    ends: list[tuple[str, PlotPoint, int]] = []
    for side, (label, number) in SIDES.items():
        lines = [points for sink in _SINKS if (points := _points(document, f"{measure}_{side}", sink, axes, number))]
        if lines:
            # The label of a side is at its longest line.
            ends.append((label, max((points[-1] for points in lines), key=lambda point: point.place), number))
    plain_numbers(axes)
    axes.set_xticks(_counts(document))
    label_ends(axes, ends)


def _points(document: Mapping[str, Any], figure: str, sink: str, axes: Axes, number: int) -> list[PlotPoint]:
    """Draws the line of a side with one kind of sink; returns its points."""
    figures, spread = document["figures"], document["spread"]
    points = [
        PlotPoint(count, figures[name], *spread.get(name, [figures[name]] * 2))
        for count in _counts(document)
        if (name := f"{figure}_{count}_{sink}") in figures
    ]
    if points:
        draw_line(axes, points, number, dashed=sink == "noop")
    return points


def _counts(document: Mapping[str, Any]) -> list[int]:
    return sorted({int(float(each)) for each in document["conditions"]["options"]["queries"].split(",")})


def main(arguments: list[str]) -> None:
    """Draws the picture of a result."""
    if len(arguments) != 2:
        raise UserError("usage: python -m freshet.bench.many.plot RESULT.json PICTURE.png")
    document = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    draw(document).savefig(arguments[1], dpi=DOTS)


if __name__ == "__main__":
    main(sys.argv[1:])
