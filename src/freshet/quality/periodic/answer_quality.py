"""How good an answer is from what was kept of its input (RT §5.2.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from freshet.model.promises.quality_table import QualityTable


def kept_along(shares: Sequence[float]) -> float:
    """What is kept of an input whose tuples pass several operators, each of which keeps a share.

    >>> kept_along([0.8, 0.5])
    0.4
    """
    return math.prod(shares)


def answer_quality(table: QualityTable, kept: Mapping[str, float], *, in_time: bool = True) -> float:
    """The quality of an answer: that of its worst input; 0 if it was late or never came.

    Args:
        table: The quality table of the query.
        kept: Share that was kept of each stream.
        in_time: Whether the answer came by its deadline.

    >>> round(answer_quality(QualityTable.parse("linear"), {"s": 0.9, "t": 0.4}), 3)
    0.4
    >>> answer_quality(QualityTable(), {"s": 1.0}, in_time=False)
    0.0
    """
    if not in_time:
        return 0.0
    return min((table.of(stream).worth(share) for stream, share in kept.items()), default=1.0)


def kept_at(table: QualityTable, level: float, streams: Sequence[str]) -> dict[str, float]:
    """The share of each stream that a level asks for (RT §4.3: 1 minus the drop ratio).

    >>> table = QualityTable.parse({"s": "tolerant", "t": "strict"})
    >>> {name: round(share, 2) for name, share in kept_at(table, 0.7, ["s", "t"]).items()}
    {'s': 0.25, 't': 0.97}
    """
    return {stream: table.of(stream).kept(level) for stream in streams}
