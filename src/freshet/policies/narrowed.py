"""A view of which a policy is to see only a part."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from freshet.model import InstanceView, OperatorView, QueryView, View


class NarrowedView:
    """A view in which only some of the operators are ready.

    Args:
        whole: The view.
        ready: Those of its operators that are ready here.

    >>> from freshet.simulation.view import RecordView
    >>> whole = RecordView.over({0: (), 1: ()})
    >>> whole.ready |= dict.fromkeys((0, 1))
    >>> view = NarrowedView(whole, {1: None})
    >>> list(view.ready), len(view.operators)
    ([1], 2)
    """

    def __init__(self, whole: View, ready: Mapping[int, None]) -> None:
        self.whole, self._ready = whole, ready

    @property
    def ready(self) -> Mapping[int, None]:
        return self._ready

    @property
    def now(self) -> float:
        return self.whole.now

    @property
    def operators(self) -> Sequence[OperatorView]:
        return self.whole.operators

    @property
    def queries(self) -> Sequence[QueryView]:
        return self.whole.queries

    @property
    def instances(self) -> Sequence[InstanceView]:
        return self.whole.instances

    @property
    def deciding(self) -> float:
        return self.whole.deciding

    @property
    def workers(self) -> int:
        return self.whole.workers

    @property
    def idle_workers(self) -> int:
        return self.whole.idle_workers

    def overhead(self, nodes: Collection[int] = ()) -> float:
        return self.whole.overhead(nodes)
