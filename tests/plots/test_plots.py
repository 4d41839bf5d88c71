"""How plots look: no label over another, no number with an exponent."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from freshet.plots import PlotPoint, draw_line, label_ends, new_figure, plain_numbers, spread_apart
from freshet.reproduce.plotting import draw_lines

heights = st.lists(st.floats(0, 1), max_size=8)


@given(heights, st.floats(0.01, 0.3))
def test_labels_are_apart_in_their_order(found: list[float], room: float) -> None:
    moved = spread_apart(found, room)
    placed = sorted(zip(found, moved, strict=True))
    assert all(below[1] <= above[1] for below, above in pairwise(placed) if below[0] < above[0])
    assert all(high - low >= room - 1e-6 for low, high in pairwise(sorted(moved)))


@given(heights)
def test_labels_that_have_room_stay(found: list[float]) -> None:
    closest = min((high - low for low, high in pairwise(sorted(found))), default=1.0)
    assert spread_apart(found, closest * 0.99) == pytest.approx(found, abs=1e-8)


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_labels_at_the_ends_of_lines_do_not_overlap_and_are_in_the_picture(scale: str) -> None:
    figure = new_figure(7, 4.5)
    axes = figure.add_subplot()
    axes.set(yscale=scale)
    ends = []
    for number in range(6):
        # Some of them end at nearly the same height, and one earlier than the others.
        points = [
            PlotPoint.of(place, [10000 + number, 10 * place]) for place in (1, 50, 100)[: 2 if number == 3 else 3]
        ]
        draw_line(axes, points, number, dashed=number % 2 == 0)
        ends.append((f"policy\n{number}", points[-1], number))
    plain_numbers(axes)
    label_ends(axes, ends)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    assert len(axes.texts) == 6
    boxes = [super(type(label), label).get_window_extent(canvas.get_renderer()) for label in axes.texts]
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    assert all(figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1 for box in boxes)
    ticks = [label.get_text() for label in [*axes.get_xticklabels(), *axes.get_yticklabels()]]
    assert not [tick for tick in ticks if "e" in tick or "^" in tick]
    assert len({line.get_marker() for line in axes.get_lines()}) == 6


def test_a_short_logarithmic_axis_has_more_than_powers_of_ten() -> None:
    axes = new_figure(7, 4.5).add_subplot()
    axes.set(yscale="log")
    draw_line(axes, [PlotPoint.of(place, [place]) for place in (80, 900)], 0)
    plain_numbers(axes)
    low, high = axes.get_ylim()
    assert [tick for tick in axes.get_yticks() if low <= tick <= high] == [100, 200, 500, 1000]


@pytest.mark.parametrize(
    ("seeds", "title"),
    [
        ([2.0, 2.0], "Fig. 1, the same with each of 2 seeds"),
        ([2.0, 3.0], "Fig. 1, mean of 2 seeds (band: their range)"),
    ],
)
def test_a_title_says_what_the_seeds_give(seeds: list[float], title: str) -> None:
    axes = new_figure(7, 4.5).add_subplot()
    axes.set_title("Fig. 1", loc="left")
    draw_lines(axes, [1, 2], {"policy": [[1.0, 1.0], seeds]})
    assert axes.get_title("left") == title


def test_a_line_of_many_points_has_no_markers_that_hide_it() -> None:
    axes = new_figure(7, 4.5).add_subplot()
    for number, count in enumerate((10, 300)):
        draw_line(axes, [PlotPoint.of(place, [place]) for place in range(count)], number)
    few, many = axes.lines
    assert few.get_marker() == "o"
    assert many.get_marker() in ("", "None")
