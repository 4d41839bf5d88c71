"""What every scheduler of periodic queries is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from hashlib import blake2b
from typing import ClassVar, Literal, get_args

from freshet.model import InstanceView, UserError, View
from freshet.policies.periodic.seconds import expected_seconds

Ties = Literal["hash", "shortest"]
"""Which of equal instances runs first: by a hash of query and release, so that none is always the last, or the one that
is expected to take the least time."""


class PeriodicScheduler(ABC):
    """Puts the instances that may run in order. Equal ones run as ``ties`` says; if that does not tell them apart, the
    earlier release runs first, then the query that was added first.

    Args:
        ties: Which of equal instances runs first.
    """

    name: ClassVar[str]
    rule: ClassVar[str]
    """What it prefers, in words."""

    def __init__(self, ties: str = "hash") -> None:
        if ties not in get_args(Ties):
            raise UserError(f"ties of {self.name} are broken by 'hash' or 'shortest', not {ties!r}")
        self.ties = ties

    @abstractmethod
    def rank(self, view: View, instance: InstanceView) -> float:
        """The least runs first."""

    def order(self, view: View, without: Collection[InstanceView] = ()) -> list[InstanceView]:
        """The instances that may run, first the one that should; if those ``without`` which it goes are given up."""
        first: dict[int, bool] = {}
        ready: dict[int, InstanceView] = {}
        for each in view.instances:
            may_run = first.setdefault(each.query, each.may_run)
            if may_run and each not in without:
                ready.setdefault(each.query, each)
        return self._sorted(view, ready.values())

    def _sorted(self, view: View, ready: Iterable[InstanceView]) -> list[InstanceView]:
        return sorted(ready, key=lambda each: (self.rank(view, each), self._tie(view, each), each.release, each.query))

    def _tie(self, view: View, instance: InstanceView) -> float:
        if self.ties == "shortest":
            return expected_seconds(view, instance)
        query, release = instance.key
        # Not by a checksum: those of texts that differ in a letter lie together, so alike queries would run together.
        return int.from_bytes(blake2b(f"{query} {release}".encode(), digest_size=6).digest())

    def together(self, view: View, order: list[InstanceView]) -> list[InstanceView]:
        """The instances that run next, as one unit: the first one of the order, if nothing else is said."""
        return order[:1]
