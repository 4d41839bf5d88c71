"""Tests that are done together give what each gives alone."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.text import Text
from freshet.kernels.superbox.lookup import NumberSets, TextTests

DTYPES = [np.dtype(name) for name in ("int8", "int32", "int64", "float32", "float64")]
WORDS = st.text("abé\U0001f600", max_size=3)


def _numbers(dtype: np.dtype[Any]) -> st.SearchStrategy[Any]:
    if dtype.kind == "f":
        return st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), -2.0, 3.0])
    limits = np.iinfo(dtype.name)
    return st.one_of(st.integers(-4, 4), st.sampled_from([int(limits.min), int(limits.max)]))


@settings(deadline=None)
@given(st.data(), st.sampled_from(DTYPES))
def test_sets_of_numbers(data: st.DataObject, dtype: np.dtype[Any]) -> None:
    literals = _numbers(dtype).filter(lambda number: number == number)
    sets = data.draw(st.lists(st.lists(literals, max_size=9), min_size=1, max_size=20))
    values = np.array(data.draw(st.lists(_numbers(dtype), max_size=20)), dtype)
    together, frame = NumberSets("x", dtype), Frame(len(values), [])
    slots = [together.add(str(numbers), np.array(numbers, dtype)) for numbers in sets]
    for numbers, slot in zip(sets, slots, strict=True):
        expected = [any(value == number for number in np.array(numbers, dtype)) for value in values]
        assert together.find(frame, values, slot).tolist() == expected


@settings(deadline=None)
@given(
    st.lists(WORDS, min_size=1, max_size=20, unique=True),
    st.lists(st.lists(st.none() | WORDS, max_size=12), min_size=1, max_size=4),
    st.booleans(),
)
def test_tests_of_text(parts: list[str], trains: list[list[str | None]], encode: bool) -> None:
    tests = TextTests()
    slots = [tests.add(part, partial(pc.starts_with, pattern=part)) for part in parts]
    for train in trains:
        text = Text(pa.array(train, pa.string()), encode)
        some = text.take(np.arange(0, len(train), 2))
        for part, slot in zip(parts, slots, strict=True):
            for found, words in ((tests.find(text, slot), train), (tests.find(some, slot), train[::2])):
                known = [index for index, word in enumerate(words) if word is not None]
                assert found[known].tolist() == [str(words[index]).startswith(part) for index in known]


def test_the_same_test_is_there_once() -> None:
    tests = TextTests()
    assert [tests.add(key, pc.string_is_ascii) for key in ("a", "b", "a")] == [0, 1, 0]
    assert len(tests) == 2


def test_words_are_asked_about_once() -> None:
    asked: list[str] = []

    def test(words: pa.Array) -> pa.Array:
        asked.extend(words.to_pylist())
        return pc.equal(words, "a")

    tests = TextTests()
    slots = [tests.add(str(number), test) for number in range(3)]
    for train in (["a", "b", "a"], ["b", "a"], ["c"]):
        assert tests.find(Text(pa.array(train), encode=True), slots[0]).tolist() == [word == "a" for word in train]
    assert asked == ["a", "b"] * 3 + ["c"] * 3
