"""Releases of periodic queries, as the log takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from freshet.log.intake.appends import Appends
from freshet.log.segments.hidden import AnswerMark
from freshet.log.store import instances, ledger
from freshet.log.store.store import Transaction
from freshet.model import Instance, Missing, Train


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

    def marks(self, train: Train) -> tuple[AnswerMark, ...] | None:
        """What the hidden columns of answers say; None: the train is not the output of a periodic query."""
        if self.last_release(train.stream) is None:
            return None
        arrivals = [each.arrival for each in train.segments], [each.last_arrival for each in train.segments]
        low, high = min(arrivals[0], default=0), max(arrivals[1], default=0)
        name = train.stream.replace("'", "''")
        where = f"WHERE query = '{name}' AND release BETWEEN {low} AND {high} AND state = 'answered'"
        return tuple(AnswerMark.of(each) for each in self.instances(where))
