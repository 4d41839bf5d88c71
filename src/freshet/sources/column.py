"""A column of a generator: its values depend on the tuple index, however they are taken."""

from __future__ import annotations

import re
import zlib
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from freshet.model import UserError
from freshet.model.schema import type_text
from freshet.sources.columns import BLOCK, ChoiceColumn, ColumnOptions, Draw, EventTimeColumn, UniformColumn

_LETTERS: Final = list("abcdefgh")


def default_column(name: str, kind: pa.DataType) -> ColumnOptions:
    """What a column holds if nothing describes it.

    >>> default_column("k", pa.int32()).kind
    'uniform'
    """
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return EventTimeColumn(kind="event_time")
    if pa.types.is_integer(kind):
        return UniformColumn(kind="uniform", low=0, high=99)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return UniformColumn(kind="uniform")
    if pa.types.is_boolean(kind):
        return ChoiceColumn(kind="choice", values=[False, True])
    if pa.types.is_string(kind):
        return ChoiceColumn(kind="choice", values=_LETTERS)
    if pa.types.is_binary(kind):
        return ChoiceColumn(kind="choice", values=[letter.encode() for letter in _LETTERS])
    raise UserError(
        f"column {name} of type {type_text(kind)} has no default: describe it with kind 'choice' or 'constant'"
    )


class Column:
    """The values of one column.

    >>> column = Column("k", pa.int64(), UniformColumn(kind="uniform", high=9), seed=1)
    >>> column.take(4000, 200, np.empty(0), np.empty(0)).equals(pa.concat_arrays(
    ...     [column.take(first, 100, np.empty(0), np.empty(0)) for first in (4000, 4100)]))
    True
    """

    def __init__(self, name: str, kind: pa.DataType, options: ColumnOptions, seed: int) -> None:
        self._name, self._type, self.options, self._seed = name, kind, options, seed
        self._key = zlib.crc32(name.encode())
        self.restore(0, None)
        self._try()

    def restore(self, index: int, carry: float | None) -> None:
        """Goes to the tuple ``index``; its block begins with ``carry``."""
        self._number = index // BLOCK
        self._before = self.options.begin() if carry is None else carry
        self._values: pa.Array | None = None
        self._after = self._before

    def carry(self, index: int) -> float:
        """What :meth:`restore` needs to go to the tuple after the last one taken."""
        return self._before if index // BLOCK == self._number else self._after

    def take(self, first: int, count: int, arrivals: NDArray[np.int64], seconds: NDArray[np.float64]) -> pa.Array:
        """The values of ``count`` tuples from ``first`` on; ``first`` must not be before those taken last."""
        parts, index = [], first
        while index < first + count:
            block = self._block(index // BLOCK)
            used = index % BLOCK
            parts.append(block.slice(used, min(first + count - index, BLOCK - used)))
            index += len(parts[-1])
        values = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        return self.options.finish(values, arrivals, seconds).cast(self._type)

    def _block(self, number: int) -> pa.Array:
        if self._values is None or number != self._number:
            if self._values is not None:
                self._before = self._after
            self._number = number
            generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([self._seed, self._key, number])))
            draw = Draw(generator, number * BLOCK, self._before, self._type)
            self._values = self._with_nulls(to_arrow(self.options.draw(draw), self._type), generator)
            self._after = draw.carry
        return self._values

    def _with_nulls(self, values: pa.Array, generator: np.random.Generator) -> pa.Array:
        if self.options.nulls == 0.0:
            return values
        holes = pa.array(generator.random(BLOCK) < self.options.nulls)
        return pa.compute.if_else(holes, pa.scalar(None, values.type), values)

    def _try(self) -> None:
        """Finds out at once whether the values fit the type."""
        arrivals = np.zeros(BLOCK, np.int64)
        try:
            self.take(0, BLOCK, arrivals, np.zeros(BLOCK))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError) as error:
            raise UserError(
                f"column {self._name}: {self.options.kind} does not fit the type"  # type: ignore[attr-defined]
                f" {type_text(self._type)}{_reason(error)}"
            ) from None
        self.restore(0, None)


def _reason(error: Exception) -> str:
    """Why values do not fit, if the error says it in the user's words: Arrow's texts speak of Arrow's types.

    >>> _reason(TypeError("it gives numbers")), _reason(pa.ArrowInvalid("Could not convert 'x' with type str: ..."))
    (': it gives numbers', ": it gives 'x'")
    """
    if not isinstance(error, pa.ArrowException):
        return f": {next(iter(str(error).splitlines()), '')}"
    value = re.search(r"Could not convert (.+?) with type|Failed to parse string: (.+?) as|Value (\S+) ", str(error))
    return f": it gives {next(filter(None, value.groups()))}" if value else ""


def to_arrow(values: Any, kind: pa.DataType) -> pa.Array:
    """Drawn numbers as an array of a type. For an integer type they are rounded and held within its range.

    >>> to_arrow(np.array([1.6, 1000.0]), pa.int8())
    <pyarrow.lib.Int8Array object at ...>
    [
      2,
      127
    ]
    """
    if not isinstance(values, np.ndarray):
        return values
    if pa.types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        whole = np.rint(values) if values.dtype.kind == "f" else values
        return pa.array(np.clip(whole, limits.min, limits.max).astype(limits.dtype))
    if pa.types.is_floating(kind):
        return pa.array(values.astype(kind.to_pandas_dtype()))
    if pa.types.is_decimal(kind):
        return _decimals(values, kind)
    if pa.types.is_string(kind):
        return pa.array(values).cast(kind)
    raise TypeError("it gives numbers; use choice, constant or event_time")


def _decimals(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    most = 10.0 ** (kind.precision - kind.scale) - 10.0**-kind.scale
    held = np.clip(np.round(values.astype(np.float64), kind.scale), -most, most)
    return pa.array(held).cast(kind, safe=False)
