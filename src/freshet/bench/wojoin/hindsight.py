"""Joins with one setting, chosen in hindsight: the least with which they find as many pairs."""

from __future__ import annotations

import numpy as np

from freshet.bench.wojoin.zeek import Ints, Merged


def hindsight(merged: Merged, accuracy: float, batch: int) -> dict[str, float]:
    """Mean number of rows that each kind of join remembers, over all rows that come, or after each batch."""
    return {
        "wjoin": _rows(merged, accuracy),
        "ttl": _seconds(merged, accuracy),
        "ss": _watermark(merged, accuracy, batch)[0],
        "ss_by_row": _watermark(merged, accuracy, 1)[0],
    }


def watermark_delay(merged: Merged, accuracy: float, batch: int) -> float:
    """The delay of the watermark, in seconds."""
    return _watermark(merged, accuracy, batch)[1] / 1e6


def _least(needed: Ints, accuracy: float) -> int:
    """The least setting with which this share of the pairs is found."""
    return int(np.sort(needed)[max(0, int(np.ceil(accuracy * len(needed))) - 1)])


def _came(merged: Merged) -> list[Ints]:
    """For each log, how many of its rows have come after each row of all."""
    return [np.cumsum(merged.side == at) for at in range(len(merged.sides))]


def _rows(merged: Merged, accuracy: float) -> float:
    """A window of the last rows of each stream (W-Join): the earlier of a pair is among the last of its stream when the
    later comes."""
    places = [merged.places[at][merged.pairs[:, at]] for at in (0, 1)]
    came = _came(merged)
    later = np.maximum(*places)
    needed = np.where(places[0] < places[1], came[0][later] - merged.pairs[:, 0], came[1][later] - merged.pairs[:, 1])
    size = _least(needed, accuracy)
    return float(sum(np.minimum(each, size).mean() for each in came))


def _seconds(merged: Merged, accuracy: float) -> float:
    """Rows of the last seconds (a time to live of all state)."""
    arrivals = [side.arrivals[merged.pairs[:, at]] for at, side in enumerate(merged.sides)]
    size = _least(np.abs(arrivals[0] - arrivals[1]), accuracy)
    gone = [np.searchsorted(side.arrivals, merged.arrivals - size) for side in merged.sides]
    return float(sum((came - out).mean() for came, out in zip(_came(merged), gone, strict=True)))


def _watermark(merged: Merged, accuracy: float, batch: int) -> tuple[float, int]:
    """A watermark of event time, the least of the streams' newest times less a delay, as Structured Streaming has it:
    that of a micro-batch comes from those before. Rows behind it are dropped, when they come and from the state. Mean
    number of rows after each batch, and the delay."""
    newest = [
        np.where(came > 0, side.arrivals[np.maximum(came - 1, 0)], -1)
        for side, came in zip(merged.sides, _came(merged), strict=True)
    ]
    batches = -(-merged.rows // batch)
    # The watermark of each batch, but for the delay.
    low = np.concatenate([[-1], np.minimum(*newest)[np.arange(1, batches) * batch - 1]])
    numbers = [places // batch for places in merged.places]
    behind = [np.maximum(0, low[number] - side.keys) for number, side in zip(numbers, merged.sides, strict=True)]
    delay = _least(np.maximum(behind[0][merged.pairs[:, 0]], behind[1][merged.pairs[:, 1]]), accuracy)
    held = 0
    for at, side in enumerate(merged.sides):
        stay = np.searchsorted(low - delay, side.keys, side="right") - numbers[at]
        held += int(np.maximum(0, stay)[behind[at] <= delay].sum())
    return held / batches, delay
