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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES: Final[dict[str, dict[str, Any]]] = {
    "freshet": {"color": "tab:blue", "marker": "o", "label": "Freshet"},
    "queries": {"color": "tab:red", "marker": "v", "label": "a streaming query for each"},
    "foreach": {"color": "tab:orange", "marker": "s", "label": "one foreachBatch for all"},
    "floor": {"color": "tab:grey", "marker": "^", "label": "floor: NumPy, no Spark"},
}
PANELS: Final = {
    "mean_s": "seconds from arrival to readable output, mean",
    "cpu_s_per_million": "CPU seconds per million query-rows",
}
_SINKS: Final = {"parquet": "-", "noop": "--"}


def draw(document: Mapping[str, Any]) -> Figure:
    """One panel for the time, one for the CPU time; both by number of queries."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("plots need matplotlib: install freshet[plot]") from None
    options = document["conditions"]["options"]
    figure = Figure(figsize=(11, 5), layout="constrained")
    panels: Any = figure.subplots(1, len(PANELS))
    for axes, (measure, title) in zip(panels, PANELS.items(), strict=True):
        for side in STYLES:
            for sink in _SINKS:
                _line(axes, document, measure, side, sink)
        axes.set(xscale="log", yscale="log", xlabel="queries", title=title)
        axes.set_xticks(_counts(document), [str(count) for count in _counts(document)])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    cores = document["conditions"]["cores"]
    figure.suptitle(
        f"Many queries over one stream, {options['rate']:,.0f} rows/s, {cores} cores "
        "(solid: Parquet sinks, dashed: no-op sinks)"
    )
    return figure


def _line(axes: Axes, document: Mapping[str, Any], measure: str, side: str, sink: str) -> None:
    """The figures of a side with bars for their spread; a side has no point where it never got going."""
    figures, spread = document["figures"], document["spread"]
    points = [
        (count, figures[name], *spread.get(name, [figures[name]] * 2))
        for count in _counts(document)
        if (name := f"{measure}_{side}_{count}_{sink}") in figures
    ]
    if not points:
        return
    places, values, lows, highs = zip(*points, strict=True)
    bars = [
        [max(0.0, value - low) for value, low in zip(values, lows, strict=True)],
        [max(0.0, high - value) for value, high in zip(values, highs, strict=True)],
    ]
    # One entry in the legend for each side: a label that begins so is not shown.
    style = STYLES[side] if sink == "parquet" else STYLES[side] | {"label": "_noop"}
    axes.errorbar(places, values, yerr=bars, linestyle=_SINKS[sink], capsize=3, **style)


def _counts(document: Mapping[str, Any]) -> list[int]:
    return sorted({int(float(each)) for each in document["conditions"]["options"]["queries"].split(",")})


def main(arguments: list[str]) -> None:
    """Draws the picture of a result."""
    if len(arguments) != 2:
        raise UserError("usage: python -m freshet.bench.many.plot RESULT.json PICTURE.png")
    document = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    draw(document).savefig(arguments[1], dpi=120)


if __name__ == "__main__":
    main(sys.argv[1:])
