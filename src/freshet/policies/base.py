"""What every policy is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from freshet.model import Chain, Plan, View


class Policy(ABC):
    """Decides what runs next. Subclass it, give it a ``name`` and a ``decide``, and register it.

    The notices are for policies that keep their own order of things up to date and do not want to look at
    every queue in every decision; the others ignore them.

    >>> from freshet.model import Step
    >>> class Newest(Policy):
    ...     name = "newest"
    ...     def decide(self, view):
    ...         ready = list(view.ready)
    ...         return (Step((rest_of_path(view, ready[-1]),)),) if ready else ()
    """

    name: ClassVar[str]

    def arrived(self, view: View, operators: Iterable[int]) -> None:  # noqa: B027 (optional notice)
        """Tuples came into the queues of these operators."""

    def completed(self, view: View, operators: Iterable[int]) -> None:  # noqa: B027 (optional notice)
        """These operators ran: their queues, costs and selectivities may have changed."""

    def changed(self, view: View, query: int) -> None:  # noqa: B027 (optional notice)
        """A query was added, dropped, quarantined, held, let go on or got another weight."""

    @abstractmethod
    def decide(self, view: View) -> Plan:
        """The plan to run next; the empty plan where nothing is worth running now."""


def rest_of_path(view: View, operator: int) -> Chain:
    """The chain from an operator to the end of its path: all that a waiting tuple still has to pass."""
    path = view.operators[operator].path
    return Chain(path[path.index(operator) :])
