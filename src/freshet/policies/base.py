"""What every policy is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from freshet.model import Decision, View


class Policy(ABC):
    """Decides what runs next. Subclass it, give it a ``name`` and a ``decide``, and register it.

    The notices are for policies that keep their own order of things up to date and do not want to look at
    every queue in every decision; the others ignore them.

    >>> from freshet.model import NOTHING, Step, push_through
    >>> class Newest(Policy):
    ...     name = "newest"
    ...     def decide(self, view):
    ...         ready = list(view.ready)
    ...         return Decision.run(Step(push_through(view, ready[-1]))) if ready else NOTHING
    """

    name: ClassVar[str]

    def arrived(self, view: View, operators: Iterable[int]) -> None:  # noqa: B027 (optional notice)
        """Tuples came into the queues of these operators."""

    def completed(self, view: View, operators: Iterable[int]) -> None:  # noqa: B027 (optional notice)
        """These operators ran: their queues, costs and selectivities may have changed."""

    def changed(self, view: View, query: int) -> None:  # noqa: B027 (optional notice)
        """A query was added, dropped, quarantined, held, let go on or was promised something else."""

    @abstractmethod
    def decide(self, view: View) -> Decision:
        """What to run next; :data:`~freshet.model.NOTHING` where nothing is worth running now."""
