"""Arrival processes as options: ``arrival = {kind = "b-model", rate = 1000, bias = 0.7}``."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from freshet.arrivals import Arrivals, BModel, Bursts, Constant, Poisson, RateSchedule
from freshet.sources.options import Duration, Options


def _rate(value: Any) -> Any:
    """Says what a rate must be if it is wrong."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0.0 < number < math.inf:
        raise ValueError(f"must be a number of tuples per second above 0, not {value!r}")
    return number


Rate = Annotated[float, BeforeValidator(_rate)]
"""Tuples per second."""


class _Arrival(Options):
    burst: int = Field(default=1, ge=1)
    """This number of consecutive tuples arrive together (FAS §6)."""

    def process(self, seed: int) -> Arrivals:
        """The process."""
        inner = self._process(seed)
        return inner if self.burst == 1 else Bursts(inner, self.burst)

    def _process(self, seed: int) -> Arrivals:
        raise TypeError(f"{type(self).__name__} is no kind of arrival")


class ConstantArrival(_Arrival):
    """See :class:`~freshet.arrivals.Constant`."""

    kind: Literal["constant"]
    rate: Rate

    def _process(self, seed: int) -> Arrivals:
        return Constant(self.rate)


class PoissonArrival(_Arrival):
    """See :class:`~freshet.arrivals.Poisson`."""

    kind: Literal["poisson"] = "poisson"
    rate: Rate

    def _process(self, seed: int) -> Arrivals:
        return Poisson(self.rate, seed)


class BModelArrival(_Arrival):
    """See :class:`~freshet.arrivals.BModel`."""

    kind: Literal["b-model"]
    rate: Rate
    bias: float = Field(default=0.7, ge=0.5, le=1.0)
    span: Annotated[Duration, Field(gt=0)] = 64.0
    levels: int = Field(default=10, ge=0, le=20)

    def _process(self, seed: int) -> Arrivals:
        return BModel(self.rate, self.bias, self.span, self.levels, seed)


class ScheduleArrival(_Arrival):
    """See :class:`~freshet.arrivals.RateSchedule`."""

    kind: Literal["schedule"]
    pieces: list[tuple[Annotated[Duration, Field(gt=0)], Annotated[float, Field(ge=0, allow_inf_nan=False)]]] = Field(
        min_length=1
    )
    repeat: bool = True

    def _process(self, seed: int) -> Arrivals:
        return RateSchedule(self.pieces, self.repeat, seed)


ArrivalOptions = Annotated[
    ConstantArrival | PoissonArrival | BModelArrival | ScheduleArrival, Field(discriminator="kind")
]
