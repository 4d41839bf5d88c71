"""How a generator makes values: one small class per kind of column. Values are drawn in blocks that depend only on the
seed, the column's name and the block's number."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated, Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field, model_validator

from freshet.sources.options import Duration, Options

BLOCK: Final = 4096
"""Number of values that are drawn together."""


@dataclass(slots=True)
class Draw:
    """What a block of values is drawn from. ``first`` is the index of its first tuple. ``carry`` is what the block
    before left behind; a column that needs it leaves its own there."""

    generator: np.random.Generator
    first: int
    carry: float
    type: pa.DataType


class ColumnOptions(Options):
    """Base of all kinds of columns.

    Args:
        nulls: Fraction of values that are NULL.
    """

    nulls: float = Field(default=0.0, ge=0.0, le=1.0)

    @abstractmethod
    def draw(self, draw: Draw) -> Any:
        """``BLOCK`` values: a NumPy array that is cast to the column's type, or an Arrow array of that type."""

    def begin(self) -> float:
        """The carry of the first block."""
        return 0.0

    def finish(self, values: pa.Array, arrivals: NDArray[np.int64], seconds: NDArray[np.float64]) -> pa.Array:
        """Adds the time at which the tuples arrive: microseconds since the epoch, and seconds of the process."""
        return values


def typed(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values of a configuration as an array of a column's type. Times and decimals may be written as text.

    >>> typed(["2024-01-01T00:00:00Z", None], pa.timestamp("us", tz="UTC")).null_count
    1
    """
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array(values).cast(kind)


def _pick(generator: np.random.Generator, cumulative: NDArray[np.float64]) -> NDArray[np.int64]:
    places = np.searchsorted(cumulative, generator.random(BLOCK) * cumulative[-1], side="right")
    return np.asarray(np.minimum(places, len(cumulative) - 1), np.int64)


class ChoiceColumn(ColumnOptions):
    """One of the given values, by weight."""

    kind: Literal["choice"]
    values: list[Any] = Field(min_length=1)
    weights: list[Annotated[float, Field(ge=0, allow_inf_nan=False)]] | None = None

    @model_validator(mode="after")
    def _weights_fit(self) -> ChoiceColumn:
        if self.weights is not None and len(self.weights) != len(self.values):
            raise ValueError(f"{len(self.weights)} weights for {len(self.values)} values: give one for each")
        if self.weights is not None and sum(self.weights) == 0:
            raise ValueError("every weight is 0: at least one must be positive")
        return self

    @cached_property
    def _cumulative(self) -> NDArray[np.float64]:
        return np.cumsum(self.weights if self.weights is not None else np.ones(len(self.values)))

    def draw(self, draw: Draw) -> Any:
        return typed(self.values, draw.type).take(pa.array(_pick(draw.generator, self._cumulative)))


class ConstantColumn(ColumnOptions):
    """Always the same value."""

    kind: Literal["constant"]
    value: Any

    def draw(self, draw: Draw) -> Any:
        return pa.repeat(typed([self.value], draw.type)[0], BLOCK)


class UniformColumn(ColumnOptions):
    """Evenly between ``low`` and ``high``; in integer columns whole numbers, both ends included."""

    kind: Literal["uniform"]
    low: float = 0.0
    high: float = 1.0

    @model_validator(mode="after")
    def _in_order(self) -> UniformColumn:
        if not self.low <= self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        return self

    def draw(self, draw: Draw) -> Any:
        if pa.types.is_integer(draw.type):
            return draw.generator.integers(int(self.low), int(self.high), BLOCK, endpoint=True)
        return draw.generator.uniform(self.low, self.high, BLOCK)


class NormalColumn(ColumnOptions):
    """Normally distributed."""

    kind: Literal["normal"]
    mean: float = 0.0
    deviation: float = Field(default=1.0, ge=0)

    def draw(self, draw: Draw) -> Any:
        return draw.generator.normal(self.mean, self.deviation, BLOCK)


class ExponentialColumn(ColumnOptions):
    """Exponentially distributed."""

    kind: Literal["exponential"]
    mean: float = Field(default=1.0, gt=0)

    def draw(self, draw: Draw) -> Any:
        return draw.generator.exponential(self.mean, BLOCK)


class ZipfColumn(ColumnOptions):
    """Ranks 1 to ``ranks``; rank k has a probability proportional to ``1 / k ** exponent``."""

    kind: Literal["zipf"]
    ranks: int = Field(default=1000, ge=1, le=10_000_000)
    exponent: float = Field(default=1.0, ge=0)

    @cached_property
    def _cumulative(self) -> NDArray[np.float64]:
        return np.cumsum(np.arange(1, self.ranks + 1, dtype=np.float64) ** -self.exponent)

    def draw(self, draw: Draw) -> Any:
        return _pick(draw.generator, self._cumulative) + 1


class SequenceColumn(ColumnOptions):
    """``start``, ``start + step``, and so on: the number of the tuple."""

    kind: Literal["sequence"]
    start: int = 0
    step: int = 1

    def draw(self, draw: Draw) -> Any:
        return self.start + self.step * np.arange(draw.first, draw.first + BLOCK)


class WalkColumn(ColumnOptions):
    """A random walk with normal steps, reflected at ``low`` and ``high`` if they are given."""

    kind: Literal["walk"]
    start: float = 0.0
    step: float = Field(default=1.0, ge=0)
    low: float | None = None
    high: float | None = None

    @model_validator(mode="after")
    def _bounds_fit(self) -> WalkColumn:
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError(f"low {self.low} must be below high {self.high}")
        low = -np.inf if self.low is None else self.low
        high = np.inf if self.high is None else self.high
        if not low <= self.start <= high:
            raise ValueError(f"start {self.start} is outside [low, high]")
        return self

    def begin(self) -> float:
        return self.start

    def draw(self, draw: Draw) -> Any:
        free = draw.carry + np.cumsum(draw.generator.normal(0.0, self.step, BLOCK))
        draw.carry = float(free[-1])
        return self._fold(free)

    def _fold(self, free: NDArray[np.float64]) -> NDArray[np.float64]:
        """Reflects the free walk. Reflection is a function of the free walk, so no loop is needed."""
        if self.low is not None and self.high is not None:
            width = self.high - self.low
            return self.low + width - np.abs((free - self.low) % (2 * width) - width)
        if self.low is not None:
            return self.low + np.abs(free - self.low)
        return free if self.high is None else self.high - np.abs(self.high - free)


class EventTimeColumn(ColumnOptions):
    """When the event happened: the tuple's arrival minus a delay.

    Args:
        delay: Mean of the (exponential) delay.
        fraction: Fraction of the tuples that are delayed at all; the others happen when they arrive.
        start: The time at which the process begins, instead of the wall clock (``"2024-01-01T00:00:00Z"``): event
            times then repeat exactly from run to run.
    """

    kind: Literal["event_time"]
    delay: Duration = 0.0
    fraction: float = Field(default=1.0, ge=0.0, le=1.0)
    start: datetime | None = None

    def draw(self, draw: Draw) -> Any:
        delays = draw.generator.exponential(1.0, BLOCK) * self.delay
        delays[draw.generator.random(BLOCK) >= self.fraction] = 0.0
        return pa.array(np.rint(delays * 1e6).astype(np.int64))

    @property
    def _begin(self) -> float | None:
        if self.start is None:
            return None
        return (self.start if self.start.tzinfo else self.start.replace(tzinfo=UTC)).timestamp()

    def clock(self, now: float, seconds: float) -> float:
        """The event time of a tuple that would arrive now without delay, ``seconds`` into the process."""
        return now if self._begin is None else self._begin + seconds

    def finish(self, values: pa.Array, arrivals: NDArray[np.int64], seconds: NDArray[np.float64]) -> pa.Array:
        times = arrivals
        if self._begin is not None:
            times = round(self._begin * 1e6) + np.rint(seconds * 1e6).astype(np.int64)
        return pc.subtract(pa.array(times), values).cast(pa.timestamp("us", tz="UTC"))


AnyColumn = Annotated[
    ChoiceColumn
    | ConstantColumn
    | UniformColumn
    | NormalColumn
    | ExponentialColumn
    | ZipfColumn
    | SequenceColumn
    | WalkColumn
    | EventTimeColumn,
    Field(discriminator="kind"),
]
