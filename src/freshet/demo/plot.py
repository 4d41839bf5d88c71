"""The picture of a run: each query on top, the run over time below.

From a kept run (``freshet demo --keep --state FOLDER``) this draws the smaller picture of the README:
``python -m freshet.demo.plot FOLDER/demo.json docs/plots/demo.png``
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from freshet import plots
from freshet.demo.finished import FinishedDemo
from freshet.demo.worth import COLOURS, group
from freshet.model import UserError, duration_text
from freshet.plots import PlotPoint, new_figure, plain_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE: Final = (14.0, 11.0)
DOTS: Final = 110
FLOOD: Final = "#f2e3b3"
_SMALL: Final = 8.5


def check_plots() -> None:
    """Raises if there is nothing to plot with."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UserError("the demo draws with matplotlib, which is missing: pip install 'freshet[plot]'") from None


def save(seen: FinishedDemo, path: Path) -> None:
    """Draws the picture into a PNG file."""
    draw(seen).savefig(path, format="png", dpi=DOTS)


def draw(seen: FinishedDemo) -> Figure:
    """The picture."""
    figure = new_figure(*SIZE)
    queries = len(seen.report["queries"])
    figure.suptitle(
        f"Network monitor: {queries} continuous queries through a flood of packets"
        f" (policy {seen.report['policy']})",
        fontsize=15, fontweight="bold",
    )  # fmt: skip
    parts: Any = figure.subplots(2, 2, height_ratios=[1.75, 1], width_ratios=[1, 1])
    (fresh, response), (waiting, course) = parts
    _bars(seen, fresh, response)
    _waiting(seen, waiting)
    _freshness(seen, course)
    return figure


def _bars(seen: FinishedDemo, fresh: Axes, response: Axes) -> None:
    ranked = [item for queries in seen.groups().values() for item in queries.items()]
    places = list(range(len(ranked)))
    colours = [COLOURS[group(query["weight"])] for _, query in ranked]
    shares = [100 * query["freshness"] for _, query in ranked]
    fresh.barh(places, shares, color=colours, height=0.7)
    for place, share in zip(places, shares, strict=True):
        inside = share > 20
        fresh.text(share + (-1 if inside else 1), place, f"{share:.0f} %", va="center", fontsize=_SMALL,
                   ha="right" if inside else "left", color="white" if inside else "black")  # fmt: skip
    fresh.set_yticks(places, [f"{name}  {query['weight']:.2f}" for name, query in ranked], fontsize=9.5)
    fresh.set(xlim=(0, 100), xlabel="share of the time in which no matching packet waited (%)")
    fresh.set_title("How fresh was each query?  (name, weight)", loc="left")
    _responses(response, places, colours, [query["response"] for _, query in ranked])
    response.set_yticks(places, [])
    first = 0
    for name, queries in seen.groups().items():
        _label(response, first + (len(queries) - 1) / 2, name, queries, response.get_yaxis_transform())
        first += len(queries)
    for axes in (fresh, response):
        axes.set_ylim(len(ranked) - 0.4, -0.6)
        axes.spines[["top", "right"]].set_visible(False)


def _responses(axes: Axes, places: Sequence[int], colours: Sequence[str], found: Sequence[Any]) -> None:
    means = [response["mean_s"] or 0.0 for response in found]
    tails = [response["p95_s"] or 0.0 for response in found]
    axes.barh(places, means, color=colours, height=0.7)
    axes.hlines(places, means, tails, colors=list(colours), linewidth=1.5)
    axes.scatter(tails, places, color=colours, marker="|", s=70)
    for place, mean, tail in zip(places, means, tails, strict=True):
        text = f" {duration_text(mean)} (p95 {duration_text(tail)})" if tail else " nothing to answer"
        axes.text(max(mean, tail), place, text, va="center", fontsize=_SMALL)
    axes.set(xlim=(0, 1.4 * max([*tails, *means, 1e-3])), xlabel="seconds from a packet's arrival to its answer")
    axes.set_title("How long did answers take?  (mean, and line to p95)", loc="left")


def _waiting(seen: FinishedDemo, axes: Axes) -> None:
    course, groups = seen.course, seen.groups()
    axes.stackplot(
        course.times(),
        [course.waiting(name) for name in groups],
        colors=[COLOURS[name] for name in groups],
    )
    _label_areas(axes, groups)
    axes.set(xlabel="time (s)", ylabel="tuples waiting in front of the queries")
    axes.set_title("How much waited, over time?", loc="left")
    plain_numbers(axes)
    _finish(seen, axes, 1.2 * (max(course.all_waiting(), default=0) or 1.0))


def _freshness(seen: FinishedDemo, axes: Axes) -> None:
    course, ends = seen.course, []
    for name, queries in reversed(seen.groups().items()):
        shares = [100 * share for share in course.freshness(queries)]
        axes.plot(course.times(), shares, color=COLOURS[name], linewidth=2)
        if shares:
            ends.append((name, PlotPoint.of(course.times()[-1], shares[-1:]), plots.COLOURS.index(COLOURS[name])))
    axes.set(xlabel="time (s); a burst makes an output stale until it is answered", ylabel="mean freshness (%)")
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.set_title("How fresh, over time?  (mean of the last 2 s)", loc="left")
    _finish(seen, axes, 100.0)
    plots.label_ends(axes, ends)


def _finish(seen: FinishedDemo, axes: Axes, top: float) -> None:
    story = seen.story
    axes.axvspan(story.flood_start, story.flood_end, color=FLOOD, zorder=0)
    axes.text((story.flood_start + story.flood_end) / 2, 0.97, "flood", transform=axes.get_xaxis_transform(),
              ha="center", va="top", fontsize=10)  # fmt: skip
    axes.set(ylim=(0, top), xlim=(0, max(seen.course.times(), default=story.seconds)))
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _weights(queries: Any) -> str:
    least, most = (pick(query["weight"] for query in queries.values()) for pick in (min, max))
    return f"weight {least:g}" if least == most else f"weight {least:g}–{most:g}"


def _label_areas(axes: Axes, groups: Mapping[str, Any]) -> None:
    # In the order of the areas, beside them: at the end, where little waits, they would all point at one place.
    for number, (name, queries) in enumerate(groups.items()):
        _label(axes, 0.2 + 0.25 * number, name, queries, axes.transAxes)


def _label(axes: Axes, height: float, name: str, queries: Any, transform: Any) -> None:
    """Writes the name of a group to the right of the axes, in its colour."""
    axes.text(1.02, height, f"{name}\n({_weights(queries)})", color=COLOURS[name], va="center", transform=transform)


def draw_small(seen: FinishedDemo) -> Figure:
    """How many tuples waited for queries of different worth, over time, and nothing else."""
    figure = new_figure(9.0, 3.4)
    axes = figure.add_subplot()
    course, groups = seen.course, seen.groups()
    times, below = course.times(), [0.0] * len(course.times())
    for name in groups:
        above = [low + rows / 1e6 for low, rows in zip(below, course.waiting(name), strict=True)]
        axes.fill_between(times, below, above, color=COLOURS[name], linewidth=0)
        below = above
    _label_areas(axes, groups)
    axes.set(xlabel="seconds", ylabel="million tuples that wait")
    axes.set_title(f"A flood of packets, {len(seen.report['queries'])} queries: who has to wait?", loc="left")
    plain_numbers(axes)
    _finish(seen, axes, 1.15 * max([*below, 1e-6]))
    return figure


def main(arguments: list[str]) -> None:
    """Draws the small picture of a kept run."""
    if len(arguments) != 2:
        raise UserError("usage: python -m freshet.demo.plot FOLDER/demo.json PICTURE.png")
    seen = FinishedDemo.from_json(json.loads(Path(arguments[0]).read_text(encoding="utf-8")))
    draw_small(seen).savefig(arguments[1], format="png", dpi=DOTS)


if __name__ == "__main__":
    main(sys.argv[1:])
