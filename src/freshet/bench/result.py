"""What a benchmark returns: figures, their spread, and the conditions under which they were measured."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from freshet.bench.figures import Spread


@dataclass(frozen=True, slots=True)
class Result:
    """Figures by name; ``spread`` has a low and a high end for those that were measured more than once.

    >>> result = Result.of({"step_ms": Spread(20.0, 18.0, 25.0), "steps": 300}, {"rows": 1000})
    >>> print(result.json("overhead"))
    {"bench": "overhead", "figures": {"step_ms": 20.0, "steps": 300}, "spread": {"step_ms": [18.0, 25.0]}, \
"conditions": {"rows": 1000}}
    """

    figures: Mapping[str, float]
    spread: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.figures.items():
            if isinstance(value, bool) or not math.isfinite(value):
                raise ValueError(f"figure {name} is {value}, which is no number")
        strangers = self.spread.keys() - self.figures.keys()
        if strangers:
            raise ValueError(f"spread of {', '.join(sorted(strangers))}, which is no figure")

    @classmethod
    def of(cls, figures: Mapping[str, float | Spread], conditions: Mapping[str, Any]) -> Result:
        """Makes a result from figures; some carry their spread."""
        plain = {name: value.middle if isinstance(value, Spread) else value for name, value in figures.items()}
        spread = {name: value.ends for name, value in figures.items() if isinstance(value, Spread)}
        return cls(plain, spread, conditions)

    def document(self, bench: str) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        return {
            "bench": bench,
            "figures": {name: _rounded(value) for name, value in self.figures.items()},
            "spread": {name: [_rounded(end) for end in ends] for name, ends in self.spread.items()},
            "conditions": dict(self.conditions),
        }

    def json(self, bench: str) -> str:
        """The object as one line."""
        return json.dumps(self.document(bench), allow_nan=False, ensure_ascii=False, default=str)

    def table(self, bench: str) -> RenderableType:
        """The result as a table for people."""
        figures = Table(title=f"freshet bench {bench}", title_justify="left", box=None, pad_edge=False)
        figures.add_column("figure")
        figures.add_column("value", justify="right")
        figures.add_column("spread", justify="right", style="dim")
        for name, value in self.figures.items():
            ends = self.spread.get(name)
            figures.add_row(name, _text(value), "" if ends is None else f"{_text(ends[0])} to {_text(ends[1])}")
        conditions = Table(title="conditions", title_justify="left", box=None, pad_edge=False, show_header=False)
        conditions.add_column(style="dim")
        conditions.add_column(overflow="fold")
        for name, value in self.conditions.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            conditions.add_row(name, Text(text))
        return Group(figures, Text(), conditions)


def _rounded(value: float) -> float:
    """Six significant digits: more would only look exact.

    >>> _rounded(12.3456789), _rounded(50), _rounded(123456789.4)
    (12.3457, 50, 123456789.0)
    """
    if isinstance(value, int):
        return value
    return float(f"{value:.6g}") if abs(value) < 1e6 else float(round(value))


def _text(value: float) -> str:
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"
