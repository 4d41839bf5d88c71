"""Columns of text. Spark compares strings byte by byte, and so does Arrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from freshet.kernels.value import Mask

Test = Callable[[pa.Array], pa.Array]

COMPARE: Final[dict[str, Callable[[Any, Any], pa.Array]]] = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip


class Text:
    """An Arrow array of strings.

    A column that several predicates test is encoded as a dictionary once; a test then looks at each different
    string once and at small integers for the rows. The answers at NULL mean nothing.

    >>> Text(pa.array(["b", "a", "b"]), encode=True).compare(">=", "b").tolist()
    [True, False, True]
    """

    __slots__ = ("_codes", "_numbers", "_words", "array", "encode")

    def __init__(self, array: pa.Array, encode: bool = False) -> None:
        self.array = array
        self.encode = encode
        self._words: pa.Array | None = None
        self._codes: npt.NDArray[np.int32] | None = None
        self._numbers: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self.array)

    def compare(self, sign: str, literal: str) -> Mask:
        """The rows that stand in a relation to a literal."""
        if sign == "=" and self.encode:
            return self._equal(literal)
        function = COMPARE[sign]
        return self._test(lambda words: function(words, literal))

    def compare_text(self, sign: str, other: Text) -> Mask:
        """The rows that stand in a relation to those of another column."""
        return _mask(COMPARE[sign](self.array, other.array))

    def among(self, literals: pa.Array) -> Mask:
        """The rows that are one of the literals."""
        return self._test(lambda words: pc.is_in(words, value_set=literals))

    def _equal(self, literal: str) -> Mask:
        codes = self._encoded()[1]
        if self._numbers is None:
            self._numbers = {word: number for number, word in enumerate(self._encoded()[0].to_pylist())}
        return np.equal(codes, self._numbers.get(literal, -1))

    def _test(self, test: Test) -> Mask:
        if not self.encode:
            return _mask(test(self.array))
        words, codes = self._encoded()
        if len(words) == 0:
            return np.zeros(len(self.array), np.bool_)
        return _mask(test(words)).take(codes)

    def _encoded(self) -> tuple[pa.Array, npt.NDArray[np.int32]]:
        if self._codes is None or self._words is None:
            encoded = self.array.dictionary_encode()
            self._words = encoded.dictionary
            self._codes = encoded.indices.fill_null(0).to_numpy()
        return self._words, self._codes


def _mask(answers: pa.Array) -> Mask:
    if answers.null_count:
        answers = answers.fill_null(False)
    mask: Mask = answers.to_numpy(zero_copy_only=False)
    return mask
