"""The picture of ``freshet bench wojoin``, from what its ``--json`` printed: rows held, and rows predicted.

``python -m freshet.bench.wojoin.plot wojoin.json docs/plots/wojoin.png``
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
    from matplotlib.figure import Figure

LINES: Final = {"held": 0, "predicted": 1}
"""The number of each line."""


def draw(document: Mapping[str, Any]) -> Figure:
    """One panel for each pair of logs."""
    courses = document["conditions"]["course"]
    figure = new_figure(6 * len(courses), 4)
    panels: Any = figure.subplots(1, len(courses), squeeze=False)
    for axes, (name, course) in zip(panels[0], courses.items(), strict=True):
        axes.set(xlabel="rows that have come", title=f"{name} with ssl: rows remembered")
        ends: list[tuple[str, PlotPoint, int]] = []
        for label, number in LINES.items():
            points = [PlotPoint(place, rows[number], *[rows[number]] * 2) for place, *rows in course]
            draw_line(axes, points, number, dashed=label == "predicted")
            ends.append((label, points[-1], number))
        plain_numbers(axes)
        label_ends(axes, ends)
    return figure


def main(arguments: list[str]) -> None:
    """Draws the picture of a result."""
    if len(arguments) != 2:
        raise UserError("usage: python -m freshet.bench.wojoin.plot RESULT.json PICTURE.png")
    document = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    draw(document).savefig(arguments[1], dpi=DOTS)


if __name__ == "__main__":
    main(sys.argv[1:])
