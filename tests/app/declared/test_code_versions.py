"""The version of own code that has none declared: a hash of all that decides its values."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from freshet.app import App
from freshet.testing import answers

LIMIT = 1.0


def app_with(what: Any) -> App:
    app = App("a")
    app.stream("s", "v double")
    app.function("f", what, "double", returns="double")
    app.query("q", "SELECT f(v) AS x FROM s")
    return app


def key_of(what: Any) -> str:
    return app_with(what).functions["f"].key


def times(factor: Any) -> Callable[[Any], Any]:
    def made(x: Any) -> Any:
        return pc.multiply(x, factor)

    return made


def with_default(factor: float) -> Callable[[Any], Any]:
    def made(x: Any, by: float = factor) -> Any:
        return pc.multiply(x, by)

    return made


def wrapped(factor: float) -> Callable[[Any], Any]:
    @functools.wraps(by_limit)
    def made(x: Any) -> Any:
        return pc.multiply(by_limit(x), factor)

    return made


def product(x: Any, factor: float) -> Any:
    return pc.multiply(x, factor)


def by_limit(x: Any) -> Any:
    return pc.multiply(x, LIMIT)


def calls_a_helper(x: Any) -> Any:
    return by_limit(x)


class Scale:
    """An object whose settings decide its values."""

    def __init__(self, *factors: Any) -> None:
        self.factors = list(factors)
        self.lock = threading.Lock()  # cannot be pickled, and decides nothing

    def __call__(self, x: Any) -> Any:
        return pc.multiply(x, self.factors[0] * LIMIT)

    def method(self, x: Any) -> Any:
        return self(x)


def partial(factor: float) -> Callable[[Any], Any]:
    return functools.partial(product, factor=factor)


def method(factor: float) -> Callable[[Any], Any]:
    return Scale(factor).method


def lambdas(factor: float) -> Callable[[Any], Any]:
    return [lambda x: pc.multiply(x, 2.0), lambda x: pc.multiply(x, 3.0)][int(factor) - 2]


@pytest.mark.parametrize("make", [times, with_default, wrapped, partial, Scale, method, lambdas])
def test_two_applications_of_one_process_have_functions_of_one_text(make: Callable[[float], Any]) -> None:
    two, three = app_with(make(2.0)), app_with(make(3.0))
    assert answers(two, {"s": [{"v": 10.0}]})["q"] == [{"x": 20.0}]
    assert answers(three, {"s": [{"v": 10.0}]})["q"] == [{"x": 30.0}]
    assert key_of(make(2.0)) == key_of(make(2.0))


@pytest.mark.parametrize("what", [by_limit, calls_a_helper, Scale(1.0), partial(LIMIT)])
def test_a_global_that_the_code_names_counts(what: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of(what)
    monkeypatch.setattr(sys.modules[__name__], "LIMIT", 2.0)
    assert (key_of(what) == before) == isinstance(what, functools.partial)  # which does not read it


def test_what_a_module_of_the_users_has_counts_where_it_is_named(tmp_path: Path) -> None:
    keys: list[str] = []
    for value in ("1", "2", "1"):
        helpers = ModuleType("helpers_of_a_test")
        helpers.__file__ = str(tmp_path / "helpers.py")
        exec(f"LIMIT = {value}\nOTHER = {len(keys)}", vars(helpers))
        space = {"helpers": helpers, "__name__": "elsewhere"}
        exec("def f(x):\n    return x + helpers.LIMIT", space)
        keys.append(key_of(space["f"]))
    assert keys[0] == keys[2] != keys[1]


def test_contents_of_all_kinds_count() -> None:
    cyclic: list[Any] = [1]
    cyclic.append(cyclic)
    contents: list[Any] = [
        1, 1.0, True, "1", b"1", None, (1,), [1], cyclic, {1}, {1: 2, 3: 4}, {3: 4, 1: 2}, {1: 3}, len, abs, dict,
        np.add, np.subtract, np.array([1, 2]), np.array([1, 3]), re.compile("a"), re.compile("b"),
        SimpleNamespace(a=1), SimpleNamespace(a=2), Scale(1), Scale(2),
    ]  # fmt: skip
    assert len({key_of(times(content)) for content in contents}) == len(contents)


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import test_code_versions as t

makes = (t.times, t.with_default, t.wrapped, t.partial, t.Scale, t.method, t.lambdas)
print([t.key_of(make(2.0)) for make in makes])
print(t.key_of(t.times({"a", "b", "c", t.Scale, frozenset("xyz")})))
print(t.key_of(lambda x: x if x in {"a", "b", "c"} else x))
space = {}
exec("def f(x):\\n    return [y in {'a', 'b', 'c'} for y in (lambda: x)()]", space)
print(t.key_of(space["f"]))
"""


def test_the_same_content_has_the_same_version_in_every_process() -> None:
    command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent)]
    seeds = [os.environ | {"PYTHONHASHSEED": seed} for seed in ("1", "2", "3")]
    told = {subprocess.run(command, env=seed, capture_output=True, check=True).stdout for seed in seeds}
    assert len(told) == 1
