"""``freshet read --instances``: the releases of a periodic query and what came of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from freshet.model import Instance

_TIME: Final = pa.timestamp("us", tz="UTC")


def instances_table(instances: Sequence[Instance]) -> pa.Table:
    """Instances as rows, oldest release first.

    >>> one = Instance("q", 2_000_000, 3_000_000, {"q.filter_1": 40}, "answered", {"q.filter_1": 0.5}, 0.5, 7, 3,
    ...                2_100_000, 3_250_000)
    >>> row = instances_table([one]).to_pylist()[0]
    >>> row["state"], row["rows"], row["first"], row["quality"], row["kept"], row["late_s"], row["sees"]
    ('answered', 3, 7, 0.5, 'q.filter_1 0.5', 0.25, 'q.filter_1 up to 40')
    """
    columns: dict[str, pa.Array] = {
        "release": _times([each.release for each in instances]),
        "deadline": _times([each.deadline for each in instances]),
        "state": pa.array([each.state for each in instances], pa.string()),
        "rows": pa.array([each.rows if each.state == "answered" else None for each in instances], pa.int64()),
        "first": pa.array([each.first if each.state == "answered" else None for each in instances], pa.int64()),
        "quality": pa.array([_quality(each) for each in instances], pa.float64()),
        "kept": pa.array([_text(each.kept, "{} {:g}") for each in instances], pa.string()),
        "started": _times([each.started for each in instances]),
        "finished": _times([each.finished for each in instances]),
        "late_s": pa.array([_late(each) for each in instances], pa.float64()),
        "sees": pa.array([_text(each.ends, "{} up to {}") for each in instances], pa.string()),
        "reason": pa.array([each.reason for each in instances], pa.string()),
    }
    return pa.table(columns)


def _times(times: Sequence[int]) -> pa.Array:
    return pa.array([None if time < 0 else time for time in times], pa.int64()).cast(_TIME)


def _quality(each: Instance) -> float | None:
    """What an answer is worth, to a millionth: hardly anything is nothing."""
    return round(each.quality, 6) if each.state == "answered" else None


def _late(each: Instance) -> float | None:
    """Seconds from its deadline to its end; None while there is none."""
    return None if each.finished < 0 else max(0.0, (each.finished - each.deadline) / 1e6)


def _text(values: Mapping[str, float], form: str) -> str:
    return ", ".join(form.format(name, value) for name, value in values.items())
