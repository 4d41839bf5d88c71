"""Tests of one column against literals, from many chains, done together.

Every row is looked up once, whatever the number of tests: its value gives a row of a table of bits, one bit per test.
Eight tests share one gather of bytes, and each test then looks at one bit. Thresholds are tested one by one: comparing
a thousand doubles takes a microsecond, but finding their places among sorted thresholds takes twenty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.text import Text, TextTest, as_mask
from freshet.kernels.expressions.value import Index, Mask

if TYPE_CHECKING:
    from freshet.kernels.expressions.node import Node

Bits = npt.NDArray[np.uint8]
NumberArray = npt.NDArray[Any]
Find = Callable[[NumberArray], Index]

SHARED_COST: Final = 0.5
"""Cost of one bit per row, where comparing one number costs 1."""
TOGETHER: Final = 3
"""Minimum number of tests that are done together."""
_FEW: Final = 6
"""Maximum number of literals that a test by itself compares one after the other."""
_WIDEST: Final = 1 << 16
"""Maximum range of integers that are looked up by position."""
_MOST_WORDS: Final = 1 << 16


def pick(column: Bits, slot: int) -> Mask:
    """The answers to one of the eight tests in a column of bytes."""
    return np.not_equal(np.bitwise_and(column, np.uint8(1 << slot % 8)), 0)


def _pack(answers: npt.NDArray[np.bool_]) -> Bits:
    return np.packbits(answers, axis=1, bitorder="little")


class NumberSets:
    """Sets of numbers that one column is tested against.

    >>> sets = NumberSets("c0", np.dtype(np.int64))
    >>> slots = [sets.add(str(numbers), np.array(numbers)) for numbers in ([1, 2], [2, 9], [5])]
    >>> frame = Frame(3, [])
    >>> [sets.find(frame, np.array([2, 5, 7]), slot).tolist() for slot in slots]
    [[True, False, False], [True, False, False], [False, True, False]]
    """

    def __init__(self, key: str, dtype: np.dtype[np.generic]) -> None:
        self.nodes: list[Node] = []
        """The nodes of the tests; their cost depends on their number."""
        self._key = key
        self._dtype = dtype
        self._sets: list[NumberArray] = []
        self._slots: dict[str, int] = {}
        self._find: Find | None = None
        self._table: Bits = np.zeros((1, 1), np.uint8)

    def __len__(self) -> int:
        return len(self._sets)

    def add(self, key: str, numbers: NumberArray) -> int:
        """Adds the set of a test; returns its number, the same for the same test."""
        if key not in self._slots:
            self._slots[key] = len(self._sets)
            self._sets.append(numbers)
            self._find = None
        return self._slots[key]

    def find(self, frame: Frame, values: NumberArray, slot: int) -> Mask:
        """The rows of a frame whose value is in a set."""
        if len(self._sets) < TOGETHER:
            return _among(values, self._sets[slot])
        find = self._find or self._build()
        kept, group = frame.bits, slot // 8
        bits = kept.get((self._key, group))
        if bits is None:
            rows = kept.get((self._key, -1))
            if rows is None:
                rows = kept[self._key, -1] = find(values)
            bits = kept[self._key, group] = self._table[:, group].take(rows)
        return pick(bits, slot)

    def _build(self) -> Find:
        known = np.unique(np.concatenate(self._sets)).astype(self._dtype)
        answers = np.array([np.isin(known, numbers) for numbers in self._sets], np.bool_).T
        # The last row is for all other numbers.
        others = np.zeros((1, len(self._sets)), np.bool_)
        self._table = np.asfortranarray(_pack(np.concatenate([answers, others])))
        self._find = _by_position(known) if _is_dense(known) else _by_search(known)
        return self._find


def _among(values: NumberArray, numbers: NumberArray) -> Mask:
    if not 0 < len(numbers) <= _FEW:
        return np.isin(values, numbers)
    found: Mask = np.equal(values, numbers[0])
    for number in numbers[1:]:
        found |= np.equal(values, number)
    return found


def _is_dense(known: NumberArray) -> bool:
    return known.dtype.kind == "i" and len(known) > 0 and int(known[-1]) - int(known[0]) < _WIDEST


def _by_position(known: NumberArray) -> Find:
    low, high = known[0], known[-1]
    places = np.full(int(high) - int(low) + 1, len(known), np.int64)
    places[known.astype(np.int64) - int(low)] = np.arange(len(known))

    def find(values: NumberArray) -> Index:
        inside = np.clip(values, low, high)
        found = places.take(inside.astype(np.int64, copy=False) - int(low))
        return np.where(inside == values, found, len(known))

    return find


def _by_search(known: NumberArray) -> Find:
    if len(known) == 0:
        return lambda values: np.zeros(len(values), np.int64)

    def find(values: NumberArray) -> Index:
        place = np.minimum(np.searchsorted(known, values), len(known) - 1)
        return np.where(known.take(place) == values, place, len(known))

    return find


class TextTests:
    """Tests of one column of text. The answers for a word are kept, because words of a stream come again and again.

    >>> import pyarrow.compute as pc
    >>> tests = TextTests()
    >>> slots = [tests.add(part, lambda words, part=part: pc.match_substring(words, part)) for part in "abc"]
    >>> text = Text(pa.array(["ab", "c", "ab"]), encode=True)
    >>> [tests.find(text, slot).tolist() for slot in slots]
    [[True, False, True], [True, False, True], [False, True, False]]
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        """The nodes of the tests; their cost depends on their number."""
        self._tests: list[TextTest] = []
        self._slots: dict[str, int] = {}
        self._rows: dict[str, int] = {}
        self._table: Bits = np.zeros((0, 1), np.uint8)

    def __len__(self) -> int:
        return len(self._tests)

    def add(self, key: str, test: TextTest) -> int:
        """Adds an Arrow predicate; returns its number, the same for the same test."""
        if key not in self._slots:
            self._slots[key] = len(self._tests)
            self._tests.append(test)
            self._rows = {}
        return self._slots[key]

    def find(self, text: Text, slot: int) -> Mask:
        """The rows for which a test is true."""
        if len(self._tests) < TOGETHER or not text.encode:
            return text.test(self._tests[slot])
        words, codes = text.parts()
        if not 0 < len(words) <= _MOST_WORDS:
            return text.test(self._tests[slot])
        group = slot // 8
        bits = text.bits.get(group)
        if bits is None:
            table = text.bits.get(-1)
            if table is None:
                table = text.bits[-1] = self._answers(words.to_pylist())
            bits = text.bits[group] = table[:, group].take(codes)
        return pick(bits, slot)

    def _answers(self, words: Sequence[str]) -> Bits:
        """The bits of words; only new words are tested."""
        new = [word for word in words if word not in self._rows]
        if new:
            if not self._rows or len(self._rows) + len(new) > _MOST_WORDS:
                new, self._rows, self._table = list(words), {}, np.zeros((0, (len(self) + 7) // 8), np.uint8)
            array = pa.array(new, pa.string())
            answers = np.array([as_mask(test(array)) for test in self._tests]).T
            known = len(self._rows)
            self._rows.update((word, known + number) for number, word in enumerate(new))
            self._table = np.concatenate([self._table, _pack(answers)])
        return np.asfortranarray(self._table[[self._rows[word] for word in words]])
