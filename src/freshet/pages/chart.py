"""Small charts as SVG: lines and areas over time, on one scale, drawn without a script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from statistics import median
from typing import Final

_FAR: Final = 5.0
"""Times that lie this many times as far apart as most have nothing between them that a line could show."""
Heights = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class ChartLine:
    """A line of a chart.

    Args:
        values: A value for each time; the line has a gap where there is none, and where times are far apart.
        style: Class of the style sheet.
        area: Whether what is below the line is filled.
    """

    values: Heights
    style: str
    area: bool = False


@dataclass(frozen=True, slots=True)
class ChartSize:
    """Width and height of a chart, in pixels."""

    width: int
    height: int


def chart(
    times: Sequence[float],
    traces: Sequence[ChartLine],
    size: ChartSize,
    *,
    top: float,
    levels: Sequence[tuple[float, str]] = (),
    marks: Sequence[tuple[float, str]] = (),
    label: str,
) -> str:
    """A chart from 0 to ``top``.

    Args:
        times: Of the values; the chart is as wide as they are long.
        traces: Its lines, those behind first.
        size: In pixels.
        top: The greatest value that it shows.
        levels: Horizontal lines, each with what it means.
        marks: Moments, each with what happened then.
        label: What it shows, for people who do not see it.

    >>> print(chart([0.0, 1.0], [ChartLine([0.0, 2.0], "mean")], ChartSize(100, 50), top=2.0, label="latency of q"))
    <svg class="chart" width="100" height="50" role="img" aria-label="latency of q"><path class="line mean"
    d="M0.0 50.0L100.0 0.0"/></svg>
    """
    scale = _Scale(times, size, top)
    parts = [scale.level(*each) for each in levels if each[0] <= top]
    parts += [scale.mark(*each) for each in marks]
    for trace in traces:
        parts += scale.drawn(trace)
    head = f'<svg class="chart" width="{size.width}" height="{size.height}" role="img" aria-label="{escape(label)}">'
    return f"{head}{''.join(parts)}</svg>"


class _Scale:
    """Places of times and values in a chart."""

    def __init__(self, times: Sequence[float], size: ChartSize, top: float) -> None:
        self._size, self._top = size, top or 1.0
        self._length = (times[-1] - times[0] if times else 0.0) or 1.0
        self._first = times[0] if times else 0.0
        self._places = [self._place(time) for time in times]
        steps = [later - earlier for earlier, later in pairwise(times)]
        far = _FAR * median(steps) if steps else 0.0
        self._gaps = [False, *(step > far for step in steps)]

    def _place(self, time: float) -> float:
        return round(self._size.width * (time - self._first) / self._length, 1)

    def _height(self, value: float) -> float:
        return round(self._size.height * (1.0 - min(1.0, max(0.0, value / self._top))), 1)

    def level(self, value: float, text: str) -> str:
        """A horizontal line."""
        y = self._height(value)
        return f'<path class="level" d="M0 {y}H{self._size.width}"><title>{escape(text)}</title></path>'

    def mark(self, time: float, text: str) -> str:
        """A vertical line."""
        return f'<path class="mark" d="M{self._place(time)} 0V{self._size.height}"><title>{escape(text)}</title></path>'

    def drawn(self, trace: ChartLine) -> Iterator[str]:
        """A line in as many pieces as there are runs of values; a single value is a short dash."""
        pieces = list(self._pieces(trace.values))
        if trace.area:
            bottom = self._size.height
            filled = "".join(
                f"M{piece[0][0]} {bottom}{_joined(piece, 'L')}L{piece[-1][0]} {bottom}Z" for piece in pieces
            )
            yield f'<path class="area {trace.style}" d="{filled}"/>'
        lines = "".join(
            _joined(piece, "M") if len(piece) > 1 else f"M{piece[0][0] - 1} {piece[0][1]}h2" for piece in pieces
        )
        yield f'<path class="line {trace.style}" d="{lines}"/>'

    def _pieces(self, values: Heights) -> Iterator[list[tuple[float, float]]]:
        piece: list[tuple[float, float]] = []
        for place, value, gap in zip(self._places, values, self._gaps[: len(self._places)], strict=True):
            if piece and (gap or value is None):
                yield piece
                piece = []
            if value is not None:
                piece.append((place, self._height(value)))
        if piece:
            yield piece


def _joined(points: Sequence[tuple[float, float]], first: str) -> str:
    """The path through points.

    >>> _joined([(0.0, 1.0), (2.0, 3.0)], "M")
    'M0.0 1.0L2.0 3.0'
    """
    return first + "L".join(f"{x} {y}" for x, y in points)
