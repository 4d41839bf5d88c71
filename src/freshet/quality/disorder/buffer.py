"""How many rows a window-oblivious join must remember (WU §3.3-3.5).

Two forms are here. The published one (Eq. 3.6-3.7) multiplies mean rates, and is one row short. The corrected one
counts the rows that came, which the append sequence knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

_TIMES_IO: Final = 3.0
"""A lag must last so many times as long as reading from the disk and writing to it take together."""


@dataclass(frozen=True, slots=True)
class JoinInput:
    """What the memory of a join depends on, of one of its inputs.

    Args:
        factor: Scrambling factor.
        rate: Rows per second.
        multiplicity: Maximum number of rows with equal keys.
    """

    factor: float
    rate: float
    multiplicity: float = 1.0

    @property
    def ordered(self) -> JoinInput:
        """The same stream once it is sorted: equal keys are all that is left of its disorder (WU §3.5.1)."""
        return JoinInput(self.multiplicity - 1.0, self.rate, self.multiplicity)


def published_rows(own: JoinInput, other: JoinInput, lag: float) -> float:
    """Rows to remember of one input for another, as published (WU Eq. 3.6 and 3.7); it can be too few.

    >>> published_rows(JoinInput(0, 1), JoinInput(1, 1), lag=0)
    1.0
    """
    return max(1.0, own.factor + own.rate * other.factor / other.rate + lag)


def corrected_rows(factor: float, lag: float, since: float) -> float:
    """Rows to remember of one input for another.

    Args:
        factor: Scrambling factor of the input.
        lag: Its lag when the row came whose place the other's latest row takes in the order of keys.
        since: Rows of the input that came since then.

    >>> corrected_rows(0, 0, since=1)
    2.0
    """
    return max(1.0, factor + lag + 1.0 + since)


def joined_input(inputs: Sequence[JoinInput]) -> JoinInput:
    """What a join on the same column gives to the next one, at most (WU Th. 3.4.1, Eq. 3.9 and 3.10).

    >>> joined_input([JoinInput(3, 50, 2), JoinInput(1, 10, 1)])
    JoinInput(factor=5.0, rate=70.0, multiplicity=2.0)
    """
    others = [prod(each.multiplicity for at, each in enumerate(inputs) if at != place) for place in range(len(inputs))]
    factor = sum(each.factor * many for each, many in zip(inputs, others, strict=True))
    rate = sum(each.rate * many for each, many in zip(inputs, others, strict=True))
    return JoinInput(float(factor), float(rate), float(prod(each.multiplicity for each in inputs)))


def joined_dependent(dependent: float, multiplicity: float) -> float:
    """The dependent scrambling factor of a joined stream, at most, from that of the input that has the columns. Each
    of its rows comes as often as the other inputs have rows with the same key; the published rule leaves that out.

    >>> joined_dependent(2, 2)
    5.0
    """
    return float((dependent + 1.0) * multiplicity - 1.0)


def other_factor(factor: float, dependent: float) -> float:
    """The scrambling factor by another column, at most (WU Th. 3.4.2, Eq. 3.11).

    Args:
        factor: Scrambling factor by the first column.
        dependent: Dependent scrambling factor from the first to the other; of a joined stream,
            :func:`joined_dependent`.

    >>> other_factor(1, 5)
    7.0
    """
    return 2.0 * factor + dependent


def sorted_rows(inputs: Sequence[JoinInput], place: int, lags: Sequence[float]) -> float:
    """Rows that an input needs if every input is sorted in memory first (WU §3.5.1): those in the join, and those that
    the sort itself holds back.

    Args:
        inputs: All inputs.
        place: The one that is asked about.
        lags: Its lag to each input; that to itself is not looked at.

    >>> sorted_rows([JoinInput(100, 1, 2), JoinInput(40, 1, 2)], 0, [0, 0])
    101.0
    """
    own = inputs[place]
    others = [(inputs[at], lags[at]) for at in range(len(inputs)) if at != place]
    joined = max(published_rows(own.ordered, other.ordered, sorted_lag(own, other, each)) for other, each in others)
    return joined + own.factor


def sorted_lag(own: JoinInput, other: JoinInput, lag: float) -> float:
    """The lag behind the sorts: each gives its rows as much later as its input is scrambled.

    >>> sorted_lag(JoinInput(100, 2), JoinInput(40, 1), lag=50)
    30.0
    """
    return lag + own.rate * other.factor / other.rate - own.factor


def log_rows(inputs: Sequence[JoinInput], place: int, ahead: float) -> float:
    """Rows that an input needs in memory if a leading input rests in its log until it is ``ahead`` rows before the
    others (WU §3.5.2).

    >>> log_rows([JoinInput(100, 1), JoinInput(40, 1)], 0, ahead=10)
    150.0
    """
    others = (inputs[at] for at in range(len(inputs)) if at != place)
    return max(published_rows(inputs[place], other, ahead) for other in others)


def worth_resting(lag: float, rate: float, seconds: float) -> bool:
    """Whether an input should rest in its log: its lag lasts at least three times as long as the disk takes (WU §3.5.2,
    where a number of rows is compared with a time).

    Args:
        lag: Rows that it runs ahead.
        rate: Its rows per second.
        seconds: What a write and a read take together.

    >>> worth_resting(100, 50.0, 0.5), worth_resting(100, 50.0, 0.7)
    (True, False)
    """
    return rate > 0.0 and lag / rate >= _TIMES_IO * seconds
