"""The queries and rows of ``freshet bench freshness``: two predicates and a projection each, of different costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

SCHEMA: Final = "id bigint, v double, w double"
LINKS: Final = (8, 16, 32, 64, 128, 256)
"""Links of arithmetic in a query, by cost class: as in FAS §6, a class costs twice as much as the one before."""
SELECTIVITIES: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Selectivities of queries, as in FAS §6."""
_LONGEST: Final = 8
"""Maximum number of links in one nested expression: parsers recurse."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query that is not built yet.

    Args:
        name: Its name.
        stream: What it reads.
        links: Length of its arithmetic.
        selectivity: Intended share of the rows that match; the measured one counts.
        salt: Makes its numbers differ from those of all others, so that no two queries share work.
    """

    name: str
    stream: str
    links: int
    selectivity: float
    salt: int

    @property
    def predicates(self) -> tuple[str, str]:
        """Half of the arithmetic is in the first, a quarter in the second; each lets the same share through.

        >>> Question("q", "s", 4, 0.25, 0).predicates
        ('((v * 3.01 + w) % 1.0 * 3.38 + w) % 1.0 < 0.5', '(w * 5.02 + v) % 1.0 < 0.5')
        """
        share = round(self.selectivity**0.5, 4)
        if share == 1.0:
            share = 1.5  # Every value lies below 1: the comparison is made and always true.
        first = chain("v", "w", self.links // 2, 3.01 + self.salt * 1e-4)
        second = chain("w", "v", self.links // 4, 5.02 + self.salt * 1e-4)
        return f"{first} < {share}", f"{second} < {share}"

    @property
    def projection(self) -> str:
        """The rest of the arithmetic."""
        return chain("v", "w", self.links - self.links // 2 - self.links // 4, 7.03 + self.salt * 1e-4)

    @property
    def sql(self) -> str:
        """The text, as a user writes it."""
        return f"SELECT id, {self.projection} AS x FROM {self.stream} WHERE {' AND '.join(self.predicates)}"


def chain(column: str, other: str, links: int, factor: float) -> str:
    """Arithmetic of ``links`` links that gives numbers spread evenly over [0, 1), whatever its length.

    A link multiplies, adds and takes the remainder. A long chain is cut into pieces; the last step takes their sum.
    """
    pieces: list[str] = []
    left = links
    while left > 0:
        text = column
        for link in range(min(left, _LONGEST)):
            step = factor + 0.37 * (link + len(pieces))
            text = f"({text} * {step:.6g} + {other}) % 1.0"
        pieces.append(text)
        left -= _LONGEST
    return pieces[0] if len(pieces) == 1 else f"({' + '.join(f'({piece})' for piece in pieces)}) % 1.0"


def questions(count: int, streams: tuple[str, ...], seed: int = 0) -> list[Question]:
    """Queries dealt out to the streams in turn; cost class and selectivity are dealt evenly and independently.

    >>> [(each.stream, each.links) for each in questions(3, ("s1", "s2"), seed=1)]
    [('s1', 16), ('s2', 8), ('s1', 32)]
    """
    rng = np.random.default_rng([seed, 50])
    links = rng.permutation(np.resize(LINKS, count))
    shares = rng.permutation(np.resize(SELECTIVITIES, count))
    return [
        Question(f"q{number}", streams[number % len(streams)], int(links[number]), float(shares[number]), number)
        for number in range(count)
    ]


def make_rows(count: int, seed: int) -> pa.Table:
    """Rows of a stream.

    >>> make_rows(2, seed=0).column_names
    ['id', 'v', 'w']
    """
    rng = np.random.default_rng([seed, 51])
    return pa.table({"id": np.arange(count), "v": rng.random(count), "w": rng.random(count)})
