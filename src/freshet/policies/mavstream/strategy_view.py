"""What a strategy sees: everything, but only the operators that are its own are ready."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from freshet.model import View
from freshet.policies.narrowed import NarrowedView


class OwnReady(Mapping[int, None]):
    """The ready operators of one strategy, oldest entry first.

    Notices say what may have become ready (:meth:`add`). What has stopped being ready without notice is left out, and
    forgotten when it is met.

    >>> everything = {3: None, 7: None}
    >>> own = OwnReady(everything)
    >>> own.add(7); own.add(8)
    >>> list(own), 8 in own, 3 in own, len(own), bool(own)
    ([7], False, False, 1, True)
    """

    __slots__ = ("_members", "everything")

    def __init__(self, everything: Mapping[int, None]) -> None:
        self.everything = everything
        self._members: dict[int, None] = {}

    def add(self, number: int) -> None:
        """An operator of the strategy may be ready."""
        self._members.setdefault(number)

    def discard(self, number: int) -> None:
        """An operator is no longer the strategy's, or begins anew at the end."""
        self._members.pop(number, None)

    def __contains__(self, number: object) -> bool:
        return number in self._members and number in self.everything

    def __getitem__(self, number: int) -> None:
        if number not in self:
            raise KeyError(number)

    def __iter__(self) -> Iterator[int]:
        return iter(self._present())

    def __len__(self) -> int:
        return len(self._present())

    def __bool__(self) -> bool:
        everything = self.everything
        return any(number in everything for number in self._members)

    def _present(self) -> list[int]:
        everything = self.everything
        present = [number for number in self._members if number in everything]
        if len(present) < len(self._members):
            self._members = dict.fromkeys(present)
        return present


class StrategyView(NarrowedView):
    """A view in which only the operators of one strategy are ready."""

    def __init__(self, whole: View) -> None:
        self.own = OwnReady(whole.ready)
        super().__init__(whole, self.own)

    def of(self, whole: View) -> StrategyView:
        """The same over the view as it is now."""
        self.whole = whole
        self.own.everything = whole.ready
        return self
