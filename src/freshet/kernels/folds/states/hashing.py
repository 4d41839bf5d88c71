"""Hashes of keys: equal keys have equal hashes, in whatever slab of rows they lie. Unequal keys seldom do.

A hash is only the way to a row. Whoever needs equal keys compares them afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freshet.kernels.expressions.value import Mask
from freshet.kernels.folds.aggregates.partials import valid_of
from freshet.kernels.folds.arrays import Ints
from freshet.kernels.folds.groups import canonical

Hashes = npt.NDArray[np.uint32]
PartNumbers = npt.NDArray[np.uint16]
_Words = npt.NDArray[np.uint64]

ALL_HASHES: Final = 1 << 32
"""Number of different hashes."""
BUCKETS: Final = 256
"""Number of buckets of keys. A part of a state is a range of them."""
AT_ONCE: Final = 1 << 16
"""Number of texts that are hashed together: each of their bytes takes 32 while they are."""
_NULL: Final = np.uint64(0x9E3779B97F4A7C15)
_BASE: Final = 0x9E3779B97F4A7C15
_INVERSE: Final = pow(_BASE, -1, 1 << 64)
_INTEGERS: Final = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64, 128: np.uint64, 256: np.uint64}


def hash_rows(columns: Sequence[pa.Array], rows: int) -> Hashes:
    """A hash of 32 bits for each row; NULL equals NULL.

    >>> one, two, three = hash_rows([pa.array(["a", "b", "a"]), pa.array([1, 1, 1])], 3).tolist()
    >>> one == three, one == two
    (True, False)
    """
    mixed = np.zeros(rows, np.uint64)
    for column in columns:
        for words in _words(column):
            mixed = mix(mixed + words)
    return (mixed >> np.uint64(32)).astype(np.uint32)


def parts_of_rows(columns: Sequence[pa.Array], rows: int, parts: int) -> PartNumbers:
    """The part of each row. Canonical keys have a hash, the hash has one of 256 buckets, and each part has a range of
    buckets. Rows that are stored rely on it: whoever changes it must change :data:`~freshet.model.names.KEY_HASH`.

    >>> parts_of_rows([pa.array([1.0, -0.0, 0.0, None])], 4, 2).tolist()
    [0, 0, 0, 1]
    """
    buckets = (hash_rows(columns, rows) >> np.uint32(24)).astype(np.uint16)
    found: PartNumbers = buckets * np.uint16(parts) // np.uint16(BUCKETS)
    return found


def same(one: pa.Array, other: pa.Array) -> Mask:
    """Where two columns of canonical keys are equal; NULL equals nothing, and NaN equals NaN.

    >>> same(pa.array([1.5, float("nan"), None]), pa.array([1.5, float("nan"), None])).tolist()
    [True, True, False]
    """
    if pa.types.is_floating(one.type):
        bits = pa.int32() if one.type.bit_width == 32 else pa.int64()
        one, other = one.view(bits), other.view(bits)
    equal: Mask = pc.equal(one, other).fill_null(False).to_numpy(zero_copy_only=False)
    return equal


def mix(words: _Words) -> _Words:
    """Every bit decides about every bit: the finalizer of G. L. Steele, D. Lea and C. H. Flood, "Fast splittable
    pseudorandom number generators", OOPSLA 2014 (SplitMix64, constants by D. Stafford)."""
    return mix_into(words.copy(), np.empty_like(words))


def mix_into(words: _Words, other: _Words) -> _Words:
    """The same in place, with as much room for what lies between."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        np.bitwise_xor(words, np.right_shift(words, np.uint64(shift), out=other), out=words)
        np.multiply(words, np.uint64(factor), out=words)
    return np.bitwise_xor(words, np.right_shift(words, np.uint64(31), out=other), out=words)


def _words(column: pa.Array) -> list[_Words]:
    """A column as words of 64 bits, one or more for each row."""
    if pa.types.is_null(column.type):
        return []
    words, valid = _content(column), valid_of(column)
    return words if valid is None else [np.where(valid, each, _NULL) for each in words]


def _content(column: pa.Array) -> list[_Words]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _content(column.dictionary_decode())
    if pa.types.is_floating(kind):
        column = canonical(column)
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif not pa.types.is_primitive(kind) and not pa.types.is_decimal(kind):
        return [_texts(column.cast(pa.large_binary()))]
    width, data = column.type.bit_width, column.buffers()[1]
    words = width // 64 or 1
    first, end = column.offset * words, (column.offset + len(column)) * words
    numbers = np.frombuffer(data, _INTEGERS[width], end)[first:] if data is not None else np.zeros(end - first)
    return list(numbers.astype(np.uint64, copy=False).reshape(-1, words).T)


def _texts(column: pa.Array) -> _Words:
    _, places, data = column.buffers()
    ends = np.frombuffer(places, np.int64, column.offset + len(column) + 1)[column.offset :]
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    cuts = range(0, len(column), AT_ONCE)
    return np.concatenate(
        [np.zeros(0, np.uint64), *(_polynomials(content, ends[at : at + AT_ONCE + 1]) for at in cuts)]
    )


def _polynomials(content: npt.NDArray[np.uint8], ends: Ints) -> _Words:
    """The polynomial of each text at a fixed place, modulo 2**64: differences of one running sum over all texts (R. M.
    Karp and M. O. Rabin, "Efficient randomized pattern-matching algorithms", 1987)."""
    letters = content[ends[0] : ends[-1]].astype(np.uint64) + np.uint64(1)
    ends = ends - ends[0]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(letters * _powers(_BASE, len(letters)))])
    back = _powers(_INVERSE, len(letters) + 1)[ends[:-1]]
    lengths = np.diff(ends).astype(np.uint64)
    hashes: _Words = (sums[ends[1:]] - sums[ends[:-1]]) * back + lengths
    return hashes


def _powers(base: int, count: int) -> _Words:
    powers = np.full(count, base, np.uint64)
    powers[:1] = 1
    return np.cumprod(powers, dtype=np.uint64)
