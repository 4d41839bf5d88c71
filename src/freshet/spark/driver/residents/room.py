"""Room: whether a resident may be submitted now.

A resident that waits for a slot is a task that waits. Where executors come and go with the work, Spark would ask for
another executor because of it. So there a resident takes a slot only if one is free, and is withdrawn if it does not
get it at once.
"""

from __future__ import annotations

from typing import Final, Protocol

from pyspark import SparkContext

from freshet.spark.driver.residents.scheduler import running_tasks
from freshet.spark.driver.residents.slots import give_back_slots, slots_of, take_slots

_LONG: Final = 5.0
_SHORT: Final = 1.0


class Room(Protocol):
    """What the seats of a pool know of the slots of their Spark."""

    elastic: bool
    """Whether executors come and go with the work."""
    pause: float
    """Seconds between two looks for a slot."""

    def enter(self, seat: int) -> bool:
        """Whether a resident may be submitted for a seat; if so, :meth:`leave` follows its end."""

    def leave(self) -> None:
        """A resident has ended."""

    def close(self) -> None:
        """All seats have ended."""


class FixedRoom:
    """Slots that stay: those of the residents were taken before (:func:`~.slots.take_slots`).

    Args:
        context: Where residents run.
        taken: How many slots were taken.
    """

    elastic = False
    pause = _LONG

    def __init__(self, context: SparkContext, taken: int) -> None:
        self._context, self._application, self._taken = context, context.applicationId, taken

    def enter(self, seat: int) -> bool:
        """Whether there are still slots for it and for jobs: executors may have been lost."""
        try:
            return slots_of(self._context) > seat + 1
        except Exception:
            return True  # running it finds out why

    def leave(self) -> None:
        """Its slot stays taken for the next one."""

    def close(self) -> None:
        """Gives the slots back."""
        give_back_slots(self._application, self._taken)


class ElasticRoom:
    """Slots that come and go: each resident takes one when it begins, and only one that is free."""

    elastic = True
    pause = _SHORT

    def __init__(self, context: SparkContext) -> None:
        self._context, self._application = context, context.applicationId

    def enter(self, seat: int) -> bool:
        """Takes a slot, if one is free and another one is left for jobs."""
        return running_tasks(self._context) < slots_of(self._context) and take_slots(self._context, 1)[0] == 1

    def leave(self) -> None:
        """Gives the slot back."""
        give_back_slots(self._application, 1)

    def close(self) -> None:
        """Every resident has given back its own."""
