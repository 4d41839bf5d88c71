"""Which tuples are kept: by numbers that must never change, because answers of earlier runs depend on them."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from freshet.kernels.keeping import kept_mask
from freshet.model import Keep, Train
from freshet.model.promises.keep import KEEP_HASH

WORD = 2**64


def number(edge: str, offset: int) -> float:
    """The number of a tuple, as it is defined: SplitMix64, one at a time."""
    salt = int.from_bytes(hashlib.sha256(f"{KEEP_HASH} {edge}".encode()).digest()[:8], "little")
    word = (offset * 0x9E3779B97F4A7C15 + salt) % WORD
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % WORD
    return ((word ^ (word >> 31)) >> 11) * 2.0**-53


@pytest.mark.parametrize("first", [0, 7, 2**40, 2**63])
def test_the_numbers_are_those_of_the_definition(first: int) -> None:
    rows = 17_000 if first == 7 else 200  # more than a block
    numbers = np.array([number("q.filter_1", offset) for offset in range(first, first + rows)])
    for ratio in (1e-9, 0.25, 0.7, float(numbers[3]), 1.0 - 2.0**-53, 1.0):
        train = Train("s", first, first + rows, keep=Keep(ratio, "q.filter_1"))
        assert (kept_mask(train) == (numbers < ratio)).all()
