"""Columns of text. Spark compares strings byte by byte, and so does Arrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freshet.kernels.expressions.value import Index, Mask

TextTest = Callable[[pa.Array], pa.Array]

_TAKE: Final = pc.get_function("take")
_UNCHECKED: Final = pc.TakeOptions(boundscheck=False)

COMPARE: Final[dict[str, Callable[[Any, Any], pa.Array]]] = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip


class Text:
    """An Arrow array of strings.

    A column that several predicates test is encoded as a dictionary once. A test then reads each distinct string once,
    and small integers for the rows. Answers at NULL mean nothing.

    >>> Text(pa.array(["b", "a", "b"]), encode=True).test(lambda words: pc.greater_equal(words, "b")).tolist()
    [True, False, True]
    """

    __slots__ = ("_array", "_codes", "_index", "_numbers", "_source", "_words", "bits", "encode")

    def __init__(self, array: pa.Array | None, encode: bool = False) -> None:
        self.encode = encode
        self.bits: dict[int, Any] = {}
        """Results of tests that are done together (see :class:`~freshet.kernels.superbox.lookup.TextTests`)."""
        self._array = array
        self._source: Text | None = None
        self._index: Index | None = None
        self._words: pa.Array | None = None
        self._codes: npt.NDArray[np.int32] | None = None
        self._numbers: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self.array) if self._index is None else len(self._index)

    @property
    def array(self) -> pa.Array:
        """The strings themselves, gathered when they are first asked for."""
        if self._array is None:
            assert self._source is not None
            assert self._index is not None
            self._array = gather(self._source.array, self._index)
        return self._array

    def take(self, index: Index) -> Text:
        """The rows with the given numbers; a dictionary stays one."""
        text = Text(None, self._codes is not None)
        text._source, text._index = self, index
        return text

    def equal(self, literal: str) -> Mask:
        """The rows that equal a literal.

        >>> Text(pa.array(["b", "a", "b"]), encode=True).equal("b").tolist()
        [True, False, True]
        """
        if not self.encode:
            return as_mask(pc.equal(self.array, literal))
        codes = self.parts()[1]
        if self._numbers is None and self._source is not None:
            self._numbers = self._source._numbers
        if self._numbers is None:
            self._numbers = {word: number for number, word in enumerate(self.parts()[0].to_pylist())}
        return np.equal(codes, self._numbers.get(literal, -1))

    def compare_text(self, sign: str, other: Text) -> Mask:
        """The rows for which a comparison with another column is true."""
        return as_mask(COMPARE[sign](self.array, other.array))

    def test(self, test: TextTest) -> Mask:
        """The rows for which an Arrow predicate is true."""
        if not self.encode:
            return as_mask(test(self.array))
        words, codes = self.parts()
        if len(words) == 0:
            return np.zeros(len(self), np.bool_)
        return as_mask(test(words)).take(codes)

    def map(self, function: Callable[[pa.Array], pa.Array]) -> pa.Array:
        """An Arrow function of the strings, which keeps NULL."""
        if not self.encode:
            return function(self.array)
        words, codes = self.parts()
        return function(words).take(pa.array(codes, mask=_nulls(self.array)))

    def numbers(self, function: Callable[[str], Any], dtype: np.dtype[np.generic]) -> tuple[Any, Mask]:
        """A number for each string, computed once per distinct string, and the rows for which it is None."""
        words, codes = self.parts()
        made = [function(word) for word in words.to_pylist()]
        wrong = np.array([number is None for number in made], np.bool_)
        values = np.array([0 if number is None else number for number in made], dtype)
        if len(made) == 0:
            return np.zeros(len(codes), dtype), np.zeros(len(codes), np.bool_)
        return values.take(codes), wrong.take(codes)

    def parts(self) -> tuple[pa.Array, npt.NDArray[np.int32]]:
        """The distinct strings, and for each row the number of its string (at NULL it means nothing)."""
        if self._source is not None and self._index is not None and self._codes is None and self.encode:
            self._words, codes = self._source.parts()
            self._codes = codes.take(self._index)
        if self._codes is None or self._words is None:
            encoded = self.array.dictionary_encode()
            self._words = encoded.dictionary
            self._codes = encoded.indices.fill_null(0).to_numpy()
        return self._words, self._codes


def gather(array: pa.Array, index: Index) -> pa.Array:
    """The rows of an array with the given numbers, which must exist."""
    rows = pa.Array.from_buffers(pa.int64(), len(index), [None, pa.py_buffer(index)], 0)
    return _TAKE.call([array, rows], _UNCHECKED)


def _nulls(array: pa.Array) -> Mask | None:
    return None if array.null_count == 0 else as_mask(array.is_null())


def as_mask(answers: pa.Array) -> Mask:
    """The answers of an Arrow predicate; its answers at NULL mean nothing."""
    if answers.null_count:
        answers = answers.fill_null(False)
    mask: Mask = answers.to_numpy(zero_copy_only=False)
    return mask
