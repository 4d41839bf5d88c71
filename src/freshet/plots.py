"""How plots look, the same everywhere: bands for what varies, labels at the ends of lines, plain numbers.

Matplotlib is imported when something is drawn: it comes with the extra ``plot``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from freshet.model import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
"""Colours that people who do not see all colours can tell apart, too (Okabe and Ito)."""
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
DOTS: Final = 120
"""Dots per inch of a PNG."""
_TEXT: Final = 10.0
_ROOM: Final = 1.35
"""Height of a label, as a multiple of the height of its letters."""
_MANY: Final = 25
"""Points of a line from which on its markers are small."""
_CROWD: Final = 60
"""Points of a line from which on it has no markers: they would hide it, and the gaps of a dashed line."""
_DECADES: Final = 100.0
"""Up to this factor powers of ten alone are too few numbers along a logarithmic axis."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure; its sides are in inches.

    Raises:
        UserError: Matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("plots need matplotlib: install freshet[plot]") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """A point of a line.

    Args:
        place: Place on the horizontal axis.
        value: Value on the vertical axis.
        low: The smallest value that was measured there.
        high: The greatest value that was measured there.
    """

    place: float
    value: float
    low: float
    high: float

    @staticmethod
    def of(place: float, values: Sequence[float]) -> PlotPoint:
        """The mean and the range of what was measured.

        >>> PlotPoint.of(3, [1.0, 2.0, 6.0])
        PlotPoint(place=3, value=3.0, low=1.0, high=6.0)
        """
        return PlotPoint(place, sum(values) / len(values), min(values), max(values))


def draw_line(axes: Axes, points: Sequence[PlotPoint], number: int, *, dashed: bool = False) -> None:
    """Draws a line with a band from the smallest to the greatest value.

    Args:
        axes: Where to draw.
        points: The points, in order.
        number: Number of the line; it decides the colour and the marker.
        dashed: Whether the line is dashed instead of solid.
    """
    colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    places = [point.place for point in points]
    style: dict[str, Any] = {
        "marker": marker if len(points) <= _CROWD else "",
        "linestyle": "--" if dashed else "-",
        "linewidth": 1.8,
        "markersize": 6 if len(points) <= _MANY else 3,
    }
    axes.fill_between(
        places, [point.low for point in points], [point.high for point in points], color=colour, alpha=0.2, linewidth=0
    )
    axes.plot(places, [point.value for point in points], color=colour, **style)


def label_ends(axes: Axes, ends: Sequence[tuple[str, PlotPoint, int]]) -> None:
    """Writes labels to the right of the axes, each at the height of the end of its line, without overlaps.

    Call it last: it depends on the limits of the axes.

    Args:
        axes: Where to write.
        ends: Label, last point and number of each line.
    """
    axes.margins(x=0.03)
    left, right = axes.get_xlim()
    axes.set_ylim(axes.get_ylim())
    axes.set_xlim(left, right)
    to_share = axes.transData + axes.transAxes.inverted()
    shares = [tuple(to_share.transform((point.place, point.value))) for _, point, _ in ends]
    rows = max((label.count("\n") + 1 for label, _, _ in ends), default=1)
    room = rows * _ROOM * _TEXT / (72 * axes.bbox.height / axes.get_figure(root=True).dpi)  # type: ignore[union-attr]
    heights = spread_apart([share[1] for share in shares], room)
    for (label, _, number), (across, up), height in zip(ends, shares, heights, strict=True):
        axes.annotate(
            label,
            xy=(across, up),
            xytext=(1.03, height),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=COLOURS[number % len(COLOURS)],
            fontsize=_TEXT,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": COLOURS[number % len(COLOURS)], "linewidth": 0.6, "alpha": 0.6},
        )


def spread_apart(heights: Sequence[float], room: float) -> list[float]:
    """Moves heights as little as necessary, so that any two are ``room`` apart; their order stays.

    >>> spread_apart([0.5, 0.5, 0.9], 0.2)
    [0.4, 0.6, 0.9]
    >>> spread_apart([0.9, 0.1], 0.2)
    [0.9, 0.1]
    """
    order = sorted(range(len(heights)), key=lambda place: heights[place])
    groups: list[tuple[float, list[int]]] = []  # the middle of labels that are close, and which they are
    for place in order:
        middle, members = heights[place], [place]
        while groups and middle - groups[-1][0] < room * (len(members) + len(groups[-1][1])) / 2:
            members = groups.pop()[1] + members
            middle = sum(heights[each] for each in members) / len(members)
        groups.append((middle, members))
    moved = [0.0] * len(heights)
    for middle, members in groups:
        for number, place in enumerate(members):
            moved[place] = round(middle + room * (number - (len(members) - 1) / 2), 9)
    return moved


def plain_numbers(axes: Axes, *, x: bool = True, y: bool = True) -> None:
    """Writes numbers along the axes as people write them, and draws a light grid. Call it when the lines are drawn."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    for axis, wanted in ((axes.xaxis, x), (axes.yaxis, y)):
        low, high = axis.get_view_interval()
        if wanted and axis.get_scale() == "log" and high < _DECADES * low:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        if wanted:
            axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    axes.minorticks_off()
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def plain(value: float) -> str:
    """A number without an exponent.

    >>> plain(100000), plain(0.01), plain(2.5)
    ('100,000', '0.01', '2.5')
    """
    return f"{value:,.10f}".rstrip("0").rstrip(".")
