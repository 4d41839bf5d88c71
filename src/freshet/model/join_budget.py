"""How much memory a join by ordered keys may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowCost:
    """What a remembered row of an input costs.

    Args:
        fixed: Bytes that every row has, with what its indexes need.
        varies: How often the bytes of its texts and lists are there.
    """

    fixed: int
    varies: int = 0


@dataclass(frozen=True, slots=True)
class JoinBudget:
    """The memory of one join.

    Args:
        join: Name of the join.
        streams: The stream of each input.
        costs: What a remembered row of each input costs.
        size: Maximum number of bytes of all remembered rows.
        rests: Whether leading inputs rest in their logs: what rests is not remembered.
        sorted: Whether rows come in the order of the key: then the mark of an input itself counts for it, too.
        left: Whether it is a left join: then this holds for the right input, whose rows decide about left ones.

    >>> JoinBudget("q.join", ("a", "b"), (RowCost(60), RowCost(80, varies=1)), 1_000_000).concerned
    ('a', 'b')
    """

    join: str
    streams: tuple[str, ...]
    costs: tuple[RowCost, ...]
    size: int
    rests: bool = False
    sorted: bool = False
    left: bool = False

    @property
    def concerned(self) -> tuple[str, ...]:
        """Its streams, each once."""
        return tuple(dict.fromkeys(self.streams))


def divided(total: int, needs: Mapping[str, int]) -> dict[str, int]:
    """Divides memory among queries: each gets what it needs if that is at most an equal share of what is left, and
    what nobody needs is divided equally.

    >>> divided(100, {"a": 10, "b": 200, "c": 40})
    {'a': 10, 'b': 50, 'c': 40}
    >>> divided(100, {"a": 10, "b": 20})
    {'a': 45, 'b': 55}
    """
    left, shares = total, dict[str, int]()
    for place, query in enumerate(sorted(needs, key=lambda query: needs[query])):
        shares[query] = min(needs[query], left // (len(needs) - place))
        left -= shares[query]
    return {query: shares[query] + left // len(needs) for query in needs}
