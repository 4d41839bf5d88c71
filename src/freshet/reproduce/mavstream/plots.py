"""Plots that mirror the figures of MAV §5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from freshet.reproduce.mavstream.runs import BURSTS, LOAD, STRATEGIES, MavResult, Wish, runs
from freshet.reproduce.plotting import PlotTable, draw_all, draw_lines
from freshet.reproduce.trial import Trial
from freshet.simulation.workloads.mavstream import FEW, RATES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

What = Literal["latency", "memory"]


def plot(trial: Trial, folder: Path) -> None:
    """Writes ``mavstream_fig5.png`` to ``mavstream_fig10.png``."""
    different: Wish = "latency, dont-care memory"
    figures: PlotTable = {
        "fig5": ("Fig. 5: latency, a single expectation", partial(_lines, what="latency", wish="latency")),
        "fig7": (
            "Fig. 7: latency, memory of the class dont-care",
            partial(_lines, what="latency", wish=different, rates=FEW),
        ),
        "fig8": (
            "Fig. 8: memory, of the class dont-care",
            partial(_lines, what="memory", wish=different, rates=FEW),
        ),
        "fig9": (
            "Fig. 9: latency, both of the class must",
            partial(_lines, what="latency", wish="latency and memory"),
        ),
        "fig10": (
            "Fig. 10: memory, both of the class must",
            partial(_lines, what="memory", wish="latency and memory"),
        ),
    }
    draw_all(trial, folder, "mavstream", figures)


def _lines(axes: Axes, trial: Trial, what: What, wish: Wish, rates: tuple[float, ...] = RATES) -> None:
    """A figure by time: each fixed strategy, and the optimizer."""
    load = BURSTS[0] if rates == FEW else LOAD
    found = {name: runs(trial, wish, load, name, rates) for name in (*STRATEGIES, None)}
    label = "mean latency of answers (s)" if what == "latency" else "bytes in queues"
    axes.set(xlabel="seconds", ylabel=label)
    draw_lines(axes, found[None][0].times, _values(found, what))


def _values(found: Mapping[str | None, Sequence[MavResult]], what: What) -> dict[str, list[list[float]]]:
    """By strategy and look, the values of all seeds; an interval without answers has the value of the one before."""
    return {
        name or "optimizer": [
            list(values) for values in zip(*(_filled(getattr(run, what)) for run in each), strict=True)
        ]
        for name, each in found.items()
    }


def _filled(values: Sequence[float]) -> list[float]:
    filled: list[float] = []
    for value in values:
        filled.append(value if not np.isnan(value) else filled[-1] if filled else 0.0)
    return filled
