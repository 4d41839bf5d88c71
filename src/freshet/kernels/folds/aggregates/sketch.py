"""Quantiles to within half a percent: values are counted in buckets that grow with them.

The bucket of a value is the rounded logarithm of its magnitude, as in DDSketch (C. Masson, J. E. Rim and H. K. Lee,
"DDSketch: a fast and fully-mergeable quantile sketch with relative-error guarantees", VLDB 2019, §2). Counts of buckets
add up, so the answer does not depend on how the tuples were cut into trains.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.arrow import decode
from freshet.kernels.expressions.types import DTYPES, is_decimal, is_fractional
from freshet.kernels.folds.aggregates.extremes import Extreme
from freshet.kernels.folds.aggregates.partials import Loaded
from freshet.kernels.folds.aggregates.sums import doubles
from freshet.kernels.folds.arrays import Floats, Ints, arrow

ERROR: Final = 0.005
"""Largest relative error of a quantile."""
_GAMMA: Final = (1 + ERROR) / (1 - ERROR)
_SHIFT: Final = 100_000
"""Added to the bucket of a positive double, which lies between -74,500 and 71,000, to make it positive."""
_INFINITE: Final = 1 << 20
_NAN: Final = _INFINITE + 1
_WHOLE: Final = 2.0**63


def buckets(values: pa.Array) -> Ints:
    """The bucket of each value; larger values have larger buckets. The bucket of a NULL means nothing.

    >>> np.argsort(buckets(pa.array([float("nan"), 3.0, -3.0, 0.0, -200.0, float("inf")]))).tolist()
    [4, 2, 3, 1, 5, 0]
    """
    numbers = doubles(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        places = np.ceil(np.log(np.abs(numbers)) / math.log(_GAMMA)) + _SHIFT
    places = np.where(np.isinf(numbers), _INFINITE, np.where(numbers == 0, 0, places))
    return np.where(np.isnan(numbers), _NAN, np.copysign(places, numbers)).astype(np.int64)


def middles(places: Ints) -> Floats:
    """The value that stands for each bucket: no value in it is more than half a percent away.

    >>> middles(buckets(pa.array([1000.0, -0.0]))).round(-1).tolist()
    [1000.0, 0.0]
    """
    with np.errstate(over="ignore"):
        sizes = 2 * np.power(_GAMMA, np.abs(places) - float(_SHIFT)) / (1 + _GAMMA)
    sizes = np.where(places == 0, 0.0, np.where(np.abs(places) == _INFINITE, np.inf, sizes))
    return np.where(places == _NAN, np.nan, np.copysign(sizes, places))


def rank(share: float, counts: Ints) -> Ints:
    """The rank of a quantile, from 0, among the sorted values, as Spark counts."""
    ranks: Ints = np.clip(np.ceil(share * counts).astype(np.int64), 1, np.maximum(counts, 1)) - 1
    return ranks


def finish_quantile(kind: pa.DataType, places: Ints, least: Loaded, greatest: Loaded) -> pa.Array:
    """Quantiles in the type of the argument, within the range of the arguments.

    Args:
        kind: The type.
        places: The buckets of the quantiles.
        least: The smallest argument of each group.
        greatest: The greatest.
    """
    valid = least.arrays[1]
    low, high = (Extreme(None, kind, "min").finish(each) for each in (least, greatest))
    guess = middles(places)
    if is_decimal(kind):
        return _decimals(kind, guess, low, high)
    lows, highs = decode(low).values, decode(high).values
    if is_fractional(kind):
        # If the greatest value is NaN, it is no bound; a guess that is NaN stays NaN.
        bounded = np.maximum(np.minimum(guess, np.where(np.isnan(highs), np.inf, highs)), lows)
    else:
        whole = np.clip(np.rint(guess), -_WHOLE, np.nextafter(_WHOLE, 0)).astype(np.int64)
        bounded = np.clip(whole, lows, highs)
    return arrow(np.where(valid, bounded, 0).astype(DTYPES[kind]), kind, valid)


def _decimals(kind: pa.DataType, guess: Floats, low: pa.Array, high: pa.Array) -> pa.Array:
    def one(value: float, least: Decimal | None, most: Decimal | None) -> Decimal | None:
        if least is None or most is None:
            return None
        guess = round(Decimal(value), int(kind.scale))
        return min(max(guess, least), most)

    rows = zip(guess.tolist(), low.to_pylist(), high.to_pylist(), strict=True)
    return pa.array([one(*row) for row in rows], kind)
