"""What is kept of the tuples that come in at an edge, and the record of what is missing.

An answer is a function of log and ledger. So a rule says for each tuple of the log whether it is kept, from the tuple's
offset and its columns alone: whoever reads the ledger can drop the same tuples again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, NamedTuple

from freshet.model.errors import UserError

KEEP_HASH: Final = 1
"""Version of the hash that says whether a tuple is kept. Rules carry it: the ledger holds those of earlier runs."""
MissingKind = Literal["thinned", "skipped", "late", "past-mark", "let-go", "lost"]
"""Why tuples are missing.

- ``thinned``: left out of answers under overload; ``skipped``: answers that were left out as a whole.
- ``late``: behind the lateness of their stream; ``past-mark``: behind the mark of an ordered key.
- ``let-go``: a join had no memory for them; ``lost``: retention dropped them before their reader came.
"""


class Timing(NamedTuple):
    """Seconds for an instance, without the overhead of its step.

    Args:
        expected: That it is expected to take.
        may: That it may take at most: where it is too slow, it ends with a part of what it was to keep.
    """

    expected: float
    may: float


@dataclass(frozen=True, slots=True)
class Keep:
    """What is kept of the tuples at an edge.

    A tuple has a number in [0, 1), the hash of the edge and of the tuple's offset. It is kept if that is below the
    ratio, so a tuple that is kept at 0.5 is kept at 0.7. With a ``value`` and a bound, tuples of a greater value are
    kept, those of a lesser one are not, and those of equal value are kept if their number is below ``ties``.

    Args:
        ratio: Share of the tuples that is wanted, in (0, 1].
        edge: Name of the edge's cursor. It has the names of the query and the node, and the port.
        value: SQL expression over the columns that come in: what a tuple is worth. NULL, NaN and numbers below 0 count
            as 0.
        bound: The value at which it is cut; None: no values were seen yet, and tuples are kept by their numbers.
        ties: Share of the tuples of exactly that value that is kept.
        reason: Why, in words; it decides nothing.
        past: Offsets of tuples that are not kept because they are past the key mark of the stream; the log has them.
        let_go: Offsets of tuples that are not kept because a join has no memory for them; the log has them, too.
        weighed: Whether kept tuples get the hidden column of weights; it decides nothing either.
        timing: How long it may take to read what is kept; None: nobody minds. What was not read is told by the result.

    >>> keep = Keep(0.5, "q.filter_1", "amount", 12.5, 0.25)
    >>> keep.rule
    'value 1 ["amount",12.5,0.25]'
    >>> Keep.of("q.filter_1", 0.5, keep.rule) == keep, Keep.of("q.filter_1", 0.5, "hash 1") == Keep(0.5, "q.filter_1")
    (True, True)
    """

    ratio: float
    edge: str
    value: str | None = None
    bound: float | None = None
    ties: float = 1.0
    reason: str = field(default="", compare=False)
    past: tuple[int, ...] = ()
    let_go: tuple[int, ...] = ()
    weighed: bool = field(default=False, compare=False)
    timing: Timing | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_ratio(self.ratio)

    @property
    def thins(self) -> bool:
        """Whether it leaves out more than what is past the mark or let go."""
        return self.ratio < 1.0 or self.bound is not None

    def read(self, share: float) -> Keep:
        """The same where only a share of what was to be kept was read.

        >>> Keep(0.5, "q.filter_1").read(0.5).ratio
        0.25
        """
        return self if share >= 1.0 else replace(self, ratio=self.ratio * share)

    def stored(self) -> dict[str, Any]:
        """It as plain values by name, for JSON; what has its default is left out.

        >>> Keep(0.5, "q.filter_1", past=(3,), timing=Timing(0.1, 0.2)).stored()
        {'ratio': 0.5, 'edge': 'q.filter_1', 'past': (3,), 'timing': (0.1, 0.2)}
        """
        found = ((each.name, each.default, getattr(self, each.name)) for each in fields(self))
        return {name: tuple(value) if name == "timing" else value for name, default, value in found if value != default}

    @classmethod
    def restored(cls, stored: Mapping[str, Any]) -> Keep:
        """The reverse of :meth:`stored`.

        >>> keep = Keep(0.5, "q.filter_1", past=(3,), timing=Timing(0.1, 0.2))
        >>> Keep.restored(json.loads(json.dumps(keep.stored()))) == keep
        True
        """
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
        }
        made = cls(**values)
        return made if made.timing is None else replace(made, timing=Timing(*made.timing))

    @property
    def rule(self) -> str:
        """The rule as the ledger has it: with the edge and the ratio it says which tuples are kept."""
        if self.bound is None:
            return f"hash {KEEP_HASH}"
        return f"value {KEEP_HASH} {json.dumps([self.value, self.bound, self.ties], separators=(',', ':'))}"

    @classmethod
    def of(cls, edge: str, ratio: float, rule: str) -> Keep:
        """What an entry of the ledger says.

        Raises:
            UserError: Another version has made the rule.
        """
        kind, version, *cut = rule.split(" ", 2)
        if kind not in ("hash", "value") or version != str(KEEP_HASH):
            raise UserError(f"the ledger has a rule of another version of Freshet: {rule!r}")
        return cls(ratio, edge, *(json.loads(cut[0]) if cut else ()))


def check_ratio(ratio: object) -> float:
    """Refuses a share to keep that is outside (0, 1].

    >>> check_ratio(0)
    Traceback (most recent call last):
    freshet.model.errors.UserError: the share to keep must lie above 0 and be at most 1, not 0
    """
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0.0 < ratio <= 1.0:
        raise UserError(f"the share to keep must lie above 0 and be at most 1, not {ratio!r}")
    return ratio


@dataclass(frozen=True, slots=True)
class Missing:
    """An entry of the ledger: what the answers of a query lack of a range of one of its inputs.

    Args:
        query: Whose answers they are; empty where the reader belongs to none alone.
        edge: Name of the cursor that went over the range.
        stream: What the cursor reads.
        kind: Why tuples are missing.
        first: Offset of the first tuple of the range.
        end: Offset after the last one.
        rows: Number of tuples of the range that are missing.
        ratio: Share of the tuples that was to be kept; None: nothing of the range is there.
        rule: Which tuples are kept; see :class:`Keep`. None: none of them. Of tuples let go: the join that did it.
        reason: Why it was done, in words.
        since: When the first tuples of the range were entered, in microseconds; the log sets it.
        time: When the last ones were.

    >>> one = Missing("q", "q.filter_1", "s", "thinned", 0, 100, 48, 0.5, "hash 1", "by hand")
    >>> one.keep == Keep(0.5, "q.filter_1")
    True
    """

    query: str
    edge: str
    stream: str
    kind: MissingKind
    first: int
    end: int
    rows: int
    ratio: float | None = None
    rule: str | None = None
    reason: str = ""
    since: int = field(default=0, compare=False)
    time: int = field(default=0, compare=False)

    @property
    def keep(self) -> Keep | None:
        """What was kept of the range; None: nothing."""
        return None if self.ratio is None or self.rule is None else Keep.of(self.edge, self.ratio, self.rule)
