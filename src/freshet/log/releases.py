"""Releases of periodic queries, as the log takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from freshet.log.intake.appends import Appends
from freshet.log.store import instances, ledger
from freshet.log.store.store import Transaction
from freshet.model import Instance, Missing


class Releasing(Appends):
    """The part of a log that knows which instances of periodic queries there are."""

    def release(
        self,
        upto: Mapping[str, int],
        made: Callable[[], Sequence[Instance]],
        missed: Sequence[Missing] = (),
    ) -> Sequence[Instance]:
        """Takes releases, all of them in one transaction. After it no tuple arrives before the latest of them, so what
        their instances see is settled.

        Args:
            upto: The last release of each query that is taken or missed, in microseconds.
            made: Makes the instances, while nothing can be appended.
            missed: What the ledger gets of missed releases.

        Returns:
            The instances.
        """
        with self._no_appends():
            found = made()
            floor = max([self._floor, *(each.release for each in found)])
            self._store.write(lambda tx: self._release(tx, upto, found, missed, floor))
        return found

    def _release(
        self,
        tx: Transaction,
        upto: Mapping[str, int],
        found: Sequence[Instance],
        missed: Sequence[Missing],
        floor: int,
    ) -> None:
        for instance in found:
            instances.write(tx, instance)
        for query, release in upto.items():
            instances.took(tx, query, release)
        for entry in missed:
            ledger.enter(tx, entry, round(self.now() * 1e6))
        if found:
            self.raise_floor(tx, floor)

    def last_release(self, query: str) -> int | None:
        """The last release of a query that was taken or missed, in microseconds; None: it never ran."""
        return instances.last_release(self._store.rows, query)

    def instances(self, where: str = "") -> list[Instance]:
        """Instances by release; ``where`` is a clause of SQL."""
        return instances.entries(self._store.rows, where)
