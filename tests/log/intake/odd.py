"""Odd rows by the thousand: what programs push and what files hold when things go wrong."""

from __future__ import annotations

import collections
import enum
import random
import types
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa

TYPES = [
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp",
    "timestamp_ntz", "decimal(10,2)", "decimal(38,18)", "array<int>", "array<string>", "map<string,int>",
    "map<int,array<double>>", "struct<a:int,b:string>", "array<struct<a:timestamp,b:decimal(5,1)>>",
    "map<string,map<string,boolean>>", "struct<a:array<map<int,string>>,b:struct<a:date>>",
]  # fmt: skip


class Raises:
    """Nothing can be asked of it."""

    def _no(self, *_: object) -> Any:
        raise RuntimeError("no")

    __repr__ = __str__ = __eq__ = __hash__ = __len__ = __bool__ = __iter__ = __getattr__ = _no
    __int__ = __index__ = __float__ = __bytes__ = __format__ = _no


class LiesAboutItself(Raises):
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise ValueError("no class")


class RaisingDict(dict[Any, Any]):
    def __getitem__(self, key: object) -> Any:
        raise LookupError("no")

    get = items = keys = values = __iter__ = __repr__ = __getitem__  # type: ignore[assignment]


class RaisingList(list[Any]):
    def __iter__(self) -> Any:
        raise RuntimeError("no")

    __len__ = __repr__ = __getitem__ = __iter__  # type: ignore[assignment]


class RaisingText(str):
    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = encode = __str__  # type: ignore[assignment]


class RaisingInt(int):
    def __index__(self) -> int:
        raise RuntimeError("no")

    __int__ = __repr__ = __str__ = __index__  # type: ignore[assignment]


class SameHash:
    """A key that meets the name of a column in a dictionary."""

    def __init__(self, like: str) -> None:
        self._like = like
        self.armed = False

    def __hash__(self) -> int:
        return hash(self._like)

    def __eq__(self, other: object) -> bool:
        if self.armed:
            raise RuntimeError("no")
        return False


class Color(enum.Enum):
    RED = 1


class Number(enum.IntEnum):
    ONE = 1


class Word(enum.StrEnum):
    A = "a"


class Zone(tzinfo):
    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        return "\ud800"


class NoZone(Zone):
    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        raise RuntimeError("no")


class NullZone(Zone):
    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None


class Point(tuple[int, int]):
    pass


class Falls(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class Nameless(metaclass=Falls):
    pass


def _endless() -> list[Any]:
    inner: list[Any] = []
    inner.append(inner)
    return inner


def _endless_map() -> dict[str, Any]:
    inner: dict[str, Any] = {}
    inner["a"] = inner
    return inner


def _laughs() -> Any:
    """Ten to the eighth parts in the memory of eighty."""
    level: Any = "ha"
    for _ in range(8):
        level = [level] * 10
    return level


def _deep() -> Any:
    level: Any = 1
    for _ in range(5_000):
        level = [level]
    return level


def _armed() -> dict[Any, Any]:
    key = SameHash("a")
    found = {key: 1}
    key.armed = True
    return found


SCALARS: list[Callable[[random.Random], Any]] = [
    lambda r: None,
    lambda r: r.random() < 0.5,
    lambda r: r.choice([0, 1, -1, 127, 128, 2**31, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30, 10**400, 10**5000]),
    lambda r: r.choice([0.0, -0.0, 1.5, 5.0, 1e19, 1e300, 5e-324, float("nan"), float("inf"), -float("inf")]),
    lambda r: r.choice(["", " ", "5", " -7 ", "5.5", "x", "true", "NaN", "1e400", "\ud800", "a\udfffb", "\0", "é" * 9]),
    lambda r: r.choice(["2024-02-29", "2024-03-10 02:30:00", "2024-13-01", "9999-12-31T23:59:59.999999Z", "0000-01-01"]),  # noqa: E501
    lambda r: r.choice(["2024-01-01T00:00:00+99:99", "-0001-01-01", "12024-01-01 00:00", "1" * 5000]),
    lambda r: r.choice([b"", b"ab", b"\xff\xfe", b"5", bytearray(b"ab"), memoryview(b"abcd")[::2]]),
    lambda r: r.choice([Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("-Infinity"), Decimal("1.5")]),
    lambda r: r.choice([Decimal(10) ** 50, Decimal("1E+999999"), Decimal("1E-999999"), Decimal("-0"), Decimal("0.001")]),  # noqa: E501
    lambda r: r.choice([date(2024, 1, 1), date.min, date.max, datetime.min, datetime.max, time(1), time(1, tzinfo=UTC)]),  # noqa: E501
    lambda r: datetime(r.randrange(1, 10_000), 3, 10, 2, 30, fold=r.randrange(2)),
    lambda r: r.choice([datetime.max, datetime.min]).replace(tzinfo=timezone(timedelta(hours=r.randrange(-23, 24)))),
    lambda r: datetime(2024, 3, 10, 2, 30, tzinfo=r.choice([UTC, ZoneInfo("Asia/Kolkata"), NoZone(), NullZone()])),
    lambda r: timedelta(r.randrange(-5, 5)),
    lambda r: np.datetime64(r.choice(["NaT", "2024-01-01", "2024-01-01T00:00:00.123456789", "-5000-01-01", "20000"])),
    lambda r: np.int64(r.choice([2**62, -(2**62), 0, 1])).astype(f"datetime64[{r.choice(['Y', 'D', 's', 'us', 'ps'])}]"),  # noqa: E501
    lambda r: np.timedelta64(r.choice([1, 2**62]), "s"),
    lambda r: r.choice([np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64])(r.randrange(100)),
    lambda r: r.choice([np.uint64(2**64 - 1), np.int64(-(2**63)), np.bool_(True), np.str_("7"), np.bytes_(b"7")]),
    lambda r: r.choice([np.float16, np.float32, np.float64, np.longdouble])(r.choice(["1.5", "nan", "inf", "3"])),
    lambda r: r.choice([np.complex64(1), np.void(b"ab"), np.array(5), np.str_("\ud800"), np.float32(0.1)]),
    lambda r: r.choice([pd.NaT, pd.NA, np.nan, pd.Timedelta(1), pd.Timestamp("2024-03-10 02:30"), pd.Timestamp.max]),
    lambda r: pd.Timestamp("2024-03-10 12:00", tz=r.choice(["UTC", "America/New_York", "Asia/Kolkata"])),
    lambda r: r.choice([pd.Period("2024"), pd.Interval(0, 1), pd.Series([1]), pd.DataFrame({"a": [1]}), pd.Index([1])]),
    lambda r: r.choice([Color.RED, Number.ONE, Word.A, Color, int, type, Nameless, Nameless(), object(), ...]),
    lambda r: r.choice([uuid.UUID(int=5), Fraction(1, 3), 1j, NotImplemented, len, lambda: 1, types, range(3)]),
    lambda r: r.choice([Raises(), LiesAboutItself(), RaisingText("x"), RaisingInt(5), RaisingDict(a=1)]),
    lambda r: r.choice([RaisingList([1]), _armed(), Point((1, 2)), (part for part in [1, 2]), iter([1])]),
    lambda r: pa.scalar(r.choice([1, None, "x", 1.5, [1], {"a": 1}])),
    lambda r: r.choice(_HUGE) if r.random() < 0.03 else [[]],
]  # fmt: skip
_HUGE: list[Any] = [_endless(), _endless_map(), _laughs(), _deep(), "x" * 100_000]


def value(rng: random.Random, depth: int = 2) -> Any:
    """Any value: a single one, or a structure of them."""
    if depth and rng.random() < 0.4:
        return _structure(rng, depth - 1)
    return rng.choice(SCALARS)(rng)


def _structure(rng: random.Random, depth: int) -> Any:
    parts = [value(rng, depth) for _ in range(rng.randrange(4))]
    names = rng.choices(["a", "b", "k", "\ud800", ""], k=len(parts))
    return rng.choice([
        lambda: parts,
        lambda: tuple(parts),
        lambda: [None],
        lambda: [[None]],
        lambda: dict(zip(names, parts, strict=True)),
        lambda: list(zip(names, parts, strict=True)),
        lambda: [*zip(names, parts, strict=True), None],
        lambda: {None: 1},
        lambda: {1: parts, 2: None},
        lambda: [{name: part} for name, part in zip(names, parts, strict=True)],
        lambda: {"a": parts, "b": dict(zip(names, parts, strict=True))},
        lambda: collections.OrderedDict(zip(names, parts, strict=True)),
        lambda: collections.defaultdict(int, zip(names, parts, strict=True)),
        lambda: types.MappingProxyType(dict(zip(names, parts, strict=True))),
        lambda: collections.UserDict(zip(names, parts, strict=True)),
        lambda: collections.deque(parts),
        lambda: {1, 2},
        lambda: frozenset({"a"}),
        lambda: np.array([1, 2]),
        lambda: np.array(["2024", "NaT"], "datetime64[ns]"),
        lambda: np.array([[1, 2], [3, 4]]),
        lambda: np.array([None, 1, "x"], object),
    ])()  # fmt: skip


def fitting(kind: str, rng: random.Random) -> Any:
    """A value of a type, so that odd ones stand beside good ones."""
    return rng.choice(_FITTING.get(kind, [None]))


_FITTING: dict[str, list[Any]] = {
    "boolean": [True], "tinyint": [1, "2"], "smallint": [1], "int": [1, 2.0], "bigint": [1, np.int64(2)],
    "float": [1.5], "double": [1.5, np.float32(2)], "string": ["a", 5], "binary": [b"a"],
    "date": [date(2024, 1, 1)], "timestamp": [5, "2024-01-01", np.datetime64("2024", "s")],
    "timestamp_ntz": [datetime(2024, 1, 1)], "decimal(10,2)": [Decimal("1.50"), 3], "decimal(38,18)": [Decimal(1)],
    "array<int>": [[1, None], ()], "array<string>": [["a"]], "map<string,int>": [{"a": 1}, [("a", 1)], {}],
    "map<int,array<double>>": [{1: [1.5]}], "struct<a:int,b:string>": [{"a": 1}, {}],
}  # fmt: skip


def row(kind: str, rng: random.Random) -> Any:
    """A row with an odd value in its column ``v``, and now and then something else that is odd."""
    chance = rng.random()
    if chance < 0.02:
        return rng.choice([None, 5, "x", [1], RaisingDict(v=1), LiesAboutItself(), {"\ud800": 1}, {1: 2}, {Raises: 1}])
    if chance < 0.03:
        return rng.choice([types.MappingProxyType({"v": 1}), collections.ChainMap({"v": 1}), {"v": 1, "w": 2}, {}])
    return {"v": fitting(kind, rng) if rng.random() < 0.5 else value(rng)}
