"""Words for what operators do."""

from __future__ import annotations

from freshet.model.operators.base import Columns


def columns_text(columns: Columns) -> str:
    """Columns as a SELECT lists them.

    >>> columns_text((("k", "k"), ("twice", "v * 2")))
    'k, v * 2 AS twice'
    """
    return ", ".join(text if text == name else f"{text} AS {name}" for name, text in columns)


def span_text(microseconds: int) -> str:
    """A duration, exactly.

    >>> span_text(100_000_000), span_text(7_200_000_000), span_text(1_500)
    ('100 s', '2 h', '1500 us')
    """
    units = ((3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1_000, "ms"), (1, "us"))
    size, unit = next((size, unit) for size, unit in units if microseconds % size == 0)
    return f"{microseconds // size} {unit}"


def time_text(time: str | None) -> str:
    """A column of times; None: the arrival."""
    return "arrival" if time is None else time
