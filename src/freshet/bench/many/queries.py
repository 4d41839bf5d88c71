"""The rows and queries of ``freshet bench many``: two predicates of mixed forms each, and a projection."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

SCHEMA: Final = "id bigint, k int, size int, v double, w double, host string, proto string"
STREAM: Final = "packets"
REGIONS: Final = ("af", "as", "eu", "me", "na", "oc", "sa", "xx")
HOSTS: Final = tuple(f"{region}-{number:02}" for region in REGIONS for number in range(40))
PROTOCOLS: Final = ("arp", "dns", "ftp", "http", "icmp", "ntp", "ssh", "tls")
KEYS: Final = 1000
SIZES: Final = (40, 1500)
"""Minimum and maximum size."""
NULLS: Final = 0.25
"""Share of rows without a ``w``."""
LEAST, MOST = 0.05, 0.10
"""Range of the selectivity of a query."""

QueryDraw = np.random.Generator


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition in SQL, and in parts for those who evaluate it without SQL.

    Args:
        form: The kind of condition.
        columns: The columns that it looks at.
        constants: The constants that it compares with.
        sql: The text.
        share: The share of all rows that pass.
    """

    form: str
    columns: tuple[str, ...]
    constants: tuple[Any, ...]
    sql: str
    share: float


@dataclass(frozen=True, slots=True)
class ManyQuery:
    """One of the queries: ``SELECT id, <expression> AS x FROM packets WHERE <first> AND <second>``."""

    name: str
    predicates: tuple[Predicate, Predicate]
    expression: str
    """A key of :data:`EXPRESSIONS`."""

    @property
    def selectivity(self) -> float:
        """Share of all rows that pass; the two predicates look at different columns, which are independent."""
        first, second = self.predicates
        return first.share * second.share

    @property
    def sql(self) -> str:
        """The text, the same for all sides."""
        where = " AND ".join(predicate.sql for predicate in self.predicates)
        return f"SELECT id, {EXPRESSIONS[self.expression]} AS x FROM {STREAM} WHERE {where}"


EXPRESSIONS: Final = {
    "k": "k",
    "w": "w",
    "host": "host",
    "k_size": "k * 2 + size",
    "bits": "size * 8",
    "v_k": "v * 100 + k",
    "v_w": "v - w",
    "v_v": "v * v",
}
"""What a query may select besides the id."""

# Forms with a share that cannot be chosen freely.


def _same_text(draw: QueryDraw) -> Predicate:
    text = str(draw.choice(PROTOCOLS))
    return Predicate("equal", ("proto",), (text,), f"proto = '{text}'", 1 / len(PROTOCOLS))


def _other_text(draw: QueryDraw) -> Predicate:
    text = str(draw.choice(PROTOCOLS))
    return Predicate("unequal", ("proto",), (text,), f"proto <> '{text}'", 1 - 1 / len(PROTOCOLS))


def _texts(draw: QueryDraw) -> Predicate:
    some = tuple(sorted(str(each) for each in draw.choice(PROTOCOLS, int(draw.integers(2, 6)), replace=False)))
    listed = ", ".join(f"'{each}'" for each in some)
    return Predicate("among", ("proto",), some, f"proto IN ({listed})", len(some) / len(PROTOCOLS))


def _prefix(draw: QueryDraw) -> Predicate:
    text = f"{draw.choice(REGIONS)}-"
    return Predicate("prefix", ("host",), (text,), f"host LIKE '{text}%'", 1 / len(REGIONS))


def _remainder(draw: QueryDraw) -> Predicate:
    by = int(draw.choice((4, 5, 8, 10)))
    rest = int(draw.integers(by))
    return Predicate("remainder", ("k",), (by, rest), f"k % {by} = {rest}", 1 / by)


def _null(draw: QueryDraw) -> Predicate:
    return Predicate("null", ("w",), (), "w IS NULL", NULLS)


def _not_null(draw: QueryDraw) -> Predicate:
    return Predicate("not_null", ("w",), (), "w IS NOT NULL", 1 - NULLS)


FIXED: Final[Sequence[Callable[[QueryDraw], Predicate]]] = (
    _same_text,
    _other_text,
    _texts,
    _prefix,
    _remainder,
    _null,
    _not_null,
)

# Forms that get a share; None if they cannot have it.

Chosen = Callable[[QueryDraw, float], Predicate | None]


def _below(draw: QueryDraw, share: float) -> Predicate | None:
    bound = round(share, 4)
    return Predicate("below", ("v",), (bound,), f"v < {_double(bound)}", bound)


def _at_least(draw: QueryDraw, share: float) -> Predicate | None:
    bound = round(1 - share, 4)
    return Predicate("at_least", ("v",), (bound,), f"v >= {_double(bound)}", 1 - bound)


def _w_above(draw: QueryDraw, share: float) -> Predicate | None:
    bound = round(1 - share / (1 - NULLS), 4)
    if bound < 0.0:
        return None
    return Predicate("above", ("w",), (bound,), f"w > {_double(bound)}", (1 - bound) * (1 - NULLS))


def _between(draw: QueryDraw, share: float) -> Predicate | None:
    width = max(1, round(share * KEYS))
    low = int(draw.integers(KEYS - width + 1))
    return Predicate("between", ("k",), (low, low + width - 1), f"k BETWEEN {low} AND {low + width - 1}", width / KEYS)


def _listed(draw: QueryDraw, share: float) -> Predicate | None:
    count = round(share * KEYS)
    if not 0 < count <= 200:
        return None
    some = tuple(sorted(draw.choice(KEYS, count, replace=False).tolist()))
    return Predicate("among", ("k",), some, f"k IN ({', '.join(map(str, some))})", count / KEYS)


def _larger(draw: QueryDraw, share: float) -> Predicate | None:
    low, high = SIZES
    count = max(1, round(share * (high - low + 1)))
    bound = high - count
    return Predicate("above", ("size",), (bound,), f"size > {bound}", count / (high - low + 1))


def _many_bits(draw: QueryDraw, share: float) -> Predicate | None:
    low, high = SIZES
    count = max(1, round(share * (high - low + 1)))
    bound = (low + count) * 8
    return Predicate("bits_below", ("size",), (bound,), f"size * 8 < {bound}", count / (high - low + 1))


def _large_sum(draw: QueryDraw, share: float) -> Predicate | None:
    # The sum of two uniform numbers is above 2 - t with probability t² / 2, for t up to 1.
    share /= 1 - NULLS
    if share > 0.5:
        return None
    bound = round(2 - math.sqrt(2 * share), 4)
    return Predicate("sum_above", ("v", "w"), (bound,), f"v + w > {_double(bound)}", (2 - bound) ** 2 / 2 * (1 - NULLS))


CHOSEN: Final[Sequence[Chosen]] = (_below, _at_least, _w_above, _between, _listed, _larger, _many_bits, _large_sum)


def _double(value: float) -> str:
    """A literal of type double; without the exponent it would be a decimal."""
    return f"{value}E0"


def make_queries(count: int, seed: int = 0) -> list[ManyQuery]:
    """Queries with a selectivity from 5 to 10 %; the first ones are the same for every count.

    >>> for query in make_queries(2, seed=1):
    ...     print(query.sql)
    SELECT id, v - w AS x FROM packets WHERE v >= 0.8925E0 AND w > 0.071E0
    SELECT id, v - w AS x FROM packets WHERE v >= 0.6707E0 AND k % 4 = 1
    """
    draw = np.random.default_rng([seed, 60])
    return [_query(f"q{number}", draw) for number in range(count)]


def _query(name: str, draw: QueryDraw) -> ManyQuery:
    while True:
        wanted = draw.uniform(LEAST + 0.005, MOST - 0.005)
        first = _first(draw, wanted)
        second = None if first is None else _pick(CHOSEN, draw)(draw, wanted / first.share)
        if first is None or second is None or set(first.columns) & set(second.columns):
            continue
        pair = (first, second) if draw.random() < 0.5 else (second, first)
        query = ManyQuery(name, pair, str(draw.choice(list(EXPRESSIONS))))
        if LEAST <= query.selectivity <= MOST:
            return query


def _first(draw: QueryDraw, wanted: float) -> Predicate | None:
    """A predicate that leaves room for a second one."""
    if draw.random() < 0.5:
        found: Predicate | None = _pick(FIXED, draw)(draw)
    else:
        found = _pick(CHOSEN, draw)(draw, draw.uniform(wanted / 0.9, 0.9))
    return found if found is not None and found.share > wanted else None


def _pick(forms: Sequence[Any], draw: QueryDraw) -> Any:
    return forms[int(draw.integers(len(forms)))]


def make_rows(first: int, count: int, seed: int = 0) -> pa.Table:
    """Rows ``first`` to ``first + count`` of the stream.

    >>> make_rows(7, 2)["id"].to_pylist()
    [7, 8]
    """
    draw = np.random.default_rng([seed, 61, first])
    w = draw.random(count)
    return pa.table(
        {
            "id": np.arange(first, first + count),
            "k": draw.integers(0, KEYS, count).astype(np.int32),
            "size": draw.integers(SIZES[0], SIZES[1] + 1, count).astype(np.int32),
            "v": draw.random(count),
            "w": pa.array(w, mask=draw.random(count) < NULLS),
            "host": pa.array(HOSTS).take(pa.array(draw.integers(0, len(HOSTS), count))),
            "proto": pa.array(PROTOCOLS).take(pa.array(draw.integers(0, len(PROTOCOLS), count))),
        }
    )
