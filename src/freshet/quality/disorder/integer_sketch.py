"""Quantiles of whole numbers in constant memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
_EXACT: Final = 256
"""Numbers below it have a bucket of their own."""
_BITS: Final = 7
"""Above, a bucket has the same leading bits: 128 buckets between a power of two and the next."""


@dataclass(frozen=True, slots=True)
class IntegerSketch:
    """How often numbers of each size came. It never changes: :meth:`plus` gives another one. The same numbers give the
    same counts, whatever the order.

    Args:
        counts: How many numbers fell into each bucket.

    >>> sketch = IntegerSketch().plus(np.array([0, 0, 3, 1000]))
    >>> sketch.quantile(0.75), sketch.quantile(1.0), sketch.total
    (3, 1003, 4)
    """

    counts: Mapping[int, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many numbers it has."""
        return sum(self.counts.values())

    def plus(self, numbers: Numbers) -> IntegerSketch:
        """The same with some more numbers, none of them below 0."""
        buckets, more = np.unique(_buckets(numbers), return_counts=True)
        counts = dict(self.counts)
        for bucket, count in zip(buckets.tolist(), more.tolist(), strict=True):
            counts[bucket] = counts.get(bucket, 0) + count
        return IntegerSketch(counts)

    def halved(self) -> IntegerSketch:
        """The same with half the weight, so that what comes later counts more. A number never gets lost."""
        return IntegerSketch({bucket: (count + 1) // 2 for bucket, count in self.counts.items()})

    def quantile(self, share: float) -> int:
        """A number that at least this share of the numbers does not exceed; at most a 128th part above the least such.

        Raises:
            ValueError: There are no numbers.
        """
        if not self.counts:
            raise ValueError("without numbers there is no quantile")
        wanted, reached = share * self.total, 0
        for bucket in sorted(self.counts):
            reached += self.counts[bucket]
            if reached >= wanted:
                break
        return _greatest(bucket)


def _buckets(numbers: Numbers) -> Numbers:
    # frexp() is exact below 2^53; above, a number may be rounded up to the next power of two.
    _, exponents = np.frexp(numbers.astype(np.float64))
    shift = np.minimum(np.maximum(exponents - 1 - _BITS, 0), 62 - _BITS).astype(np.int64)
    shift -= (numbers >> shift < 1 << _BITS) & (shift > 0)
    buckets: Numbers = (shift << _BITS) + (numbers >> shift)
    return buckets


def _greatest(bucket: int) -> int:
    if bucket < _EXACT:
        return bucket
    shift = (bucket >> _BITS) - 1
    return ((bucket - (shift << _BITS) + 1) << shift) - 1
