"""When elements are polled: the pure policy of :mod:`freshet.mirror`, as a live mirror uses it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from freshet.mirror import Learner, RatePrior, Refresher
from freshet.mirror.floors import Floors
from freshet.sources.mirror.known import KnownElement
from freshet.sources.mirror.options import MirrorOptions

_COMMON: Final = "prior"
"""What the learner keeps once for all elements."""
Learned = Mapping[str, float | None]
"""What the learner keeps of an element, by name."""


class PollSchedule:
    """Asks a refresher what to poll, and keeps what it learns in a form that can be committed element by element.

    Args:
        options: Of the mirror.

    >>> options = MirrorOptions(elements=["a"], budget=1, audit=0, sql={"database": "x.db", "query": "SELECT ?"})
    >>> schedule = PollSchedule(options)
    >>> schedule.add([KnownElement("a"), KnownElement("b")], now=0.0)
    >>> schedule.due(0.0, 10), schedule.due(0.0, 10)
    ([0], [])
    >>> schedule.polled(0, 0.1, changed=False)
    >>> [(learned, due)] = schedule.records([0])
    >>> learned["last"], learned["changes"]
    (0.1, 0.0)
    """

    def __init__(self, options: MirrorOptions) -> None:
        self._options = options
        self._prior = RatePrior(1.0 / options.change_every)
        self._in_bytes = options.budget is None
        self._worth = self._rates = np.empty(0)
        self._refresher: Refresher | None = None

    def add(self, elements: Sequence[KnownElement], now: float) -> None:
        """Adds elements; they have the next numbers."""
        worth, sizes = np.array([each.worth for each in elements]), np.array([self._size(each) for each in elements])
        known = np.array([each.rate or self._prior.mean for each in elements])
        self._worth = np.append(self._worth, worth)
        floors = floors_of(elements)
        if self._refresher is not None:
            first = len(self._refresher.learner)
            self._refresher.add(worth, sizes, None if self._options.learn else known, floors)
            _assume(self._refresher.learner, elements, first)
            return
        learner = Learner(len(elements), prior=self._prior)
        _assume(learner, elements, 0)
        self._refresher = Refresher(
            learner,
            worth,
            sizes,
            self._options.planned,
            exploration=self._options.explore if self._options.learn else 0.0,
            floors=floors,
            known=None if self._options.learn else known,
        )
        self._refresher.replan(now)

    def _size(self, element: KnownElement) -> float:
        return element.expected_size if self._in_bytes else 1.0

    def set_worth(self, number: int, worth: float) -> None:
        """An element is worth more or less from now on; 0: it is not polled any more."""
        self._worth[number] = worth
        self._ready.set_worth(number, worth)

    def weigh(self, worth: Sequence[float]) -> None:
        """All elements are worth something else from now on."""
        self._worth = np.array(worth)
        self._ready.weigh(self._worth)

    def set_floor(self, number: int, element: KnownElement) -> None:
        """An element is promised something else."""
        floor = floors_of([element])
        self._ready.set_floor(number, float(floor.freshness[0]), float(floor.age[0]))

    def set_rate(self, number: int, element: KnownElement) -> None:
        """Another change rate is given; it holds if none is learned."""
        self._ready.set_known(number, element.rate or self._prior.mean)

    @property
    def floors_need(self) -> float | None:
        """Budget that the floors need by what is known of the rates; None: there are no floors."""
        if self._refresher is None or not self._refresher.floors_need:
            return None
        return self._refresher.floors_need * self._options.rate / self._options.planned

    def set_size(self, number: int, element: KnownElement) -> None:
        """A poll has shown what an element costs."""
        if self._in_bytes:
            self._ready.set_size(number, self._size(element))

    def due(self, now: float, room: int) -> list[int]:
        """Elements to poll now; each is under way until :meth:`polled` or :meth:`failed`."""
        return [] if self._refresher is None else self._refresher.due(now, room)

    def wait(self, now: float) -> float:
        """Seconds until :meth:`due` may hand out something; infinite if nothing is known to come."""
        return math.inf if self._refresher is None else self._refresher.next_due(now)

    def polled(self, number: int, now: float, changed: bool, modified: float | None = None) -> None:
        """An element has answered."""
        self._ready.polled(number, now, changed, modified)

    def failed(self, number: int, until: float) -> None:
        """An element has not answered, and is not polled before a time."""
        self._ready.put_off(number, until)

    def failing(self, numbers: Iterable[int]) -> None:
        """Elements that have failed, or whose host has: plans are made without them until they answer."""
        for number in numbers:
            self._ready.leave(number)

    def replan(self, now: float, *, always: bool = False) -> None:
        """Plans anew, if enough was seen since the last plan."""
        if self._refresher is not None and (always or self._refresher.wants_replan()):
            self._refresher.replan(now, always=always)
            self._rates = self._refresher.rates()

    def rate(self, number: int) -> float:
        """Changes a second of an element, as far as it was known at the last plan."""
        return float(self._rates[number]) if number < len(self._rates) else self._prior.mean

    def rates(self) -> NDArray[np.float64]:
        """Changes a second of all elements, as far as they are known."""
        return np.empty(0) if self._refresher is None else self._refresher.rates()

    def frequencies(self) -> NDArray[np.float64]:
        """Polls a second of all elements by the present plan."""
        return np.empty(0) if self._refresher is None else np.asarray(self._ready.state()["frequencies"])

    @property
    def planned(self) -> float | None:
        """Perceived freshness that the present plan reaches on average; what fails counts as not fresh."""
        return None if self._refresher is None else self._refresher.perceived

    def freshness(self, now: float) -> float | None:
        """Estimated perceived freshness now (CAR §2.2): the chance that nothing has changed since the last poll,
        weighted by worth. An element that was never polled has no copy that could be fresh."""
        total = float(self._worth.sum())
        if self._refresher is None or total <= 0.0:
            return None
        ages = now - self._refresher.learner.last_polls()
        fresh = np.exp(-self.rates() * np.maximum(ages, 0.0))
        return float(self._worth @ np.nan_to_num(fresh, nan=0.0) / total)

    def records(self, numbers: Sequence[int]) -> list[tuple[Learned, float | None]]:
        """What was learned of elements and when they are due, JSON-ready."""
        if not numbers:
            return []
        learned, dues = self._ready.learner.state(), self._ready.state()["due"][numbers].tolist()
        columns = {name: values[numbers].tolist() for name, values in learned.items() if name != _COMMON}
        rows = [{name: _plain(values[place]) for name, values in columns.items()} for place in range(len(numbers))]
        return [(row, _plain(due)) for row, due in zip(rows, dues, strict=True)]

    def common(self) -> Any:
        """What was learned of all elements together, JSON-ready; None: nothing."""
        return None if self._refresher is None else self._refresher.learner.state()[_COMMON]

    def restore(self, learned: Sequence[Learned], dues: Sequence[float | None], common: Any, now: float) -> None:
        """Takes back the records of all elements, and what :meth:`common` gave."""
        if self._refresher is None:
            return
        state = self._refresher.learner.state()
        for name in state.keys() - {_COMMON}:
            # A version that kept other things left no value for this one.
            state[name] = [_number(row[name]) if name in row else new
                           for row, new in zip(learned, state[name].tolist(), strict=True)]  # fmt: skip
        self._refresher.learner.restore({**state, _COMMON: common or state[_COMMON]})
        self._refresher.replan(now, always=True)
        due = np.array([math.inf if due is None else due for due in dues])
        self._refresher.restore({**self._refresher.state(), "due": due}, now)

    @property
    def _ready(self) -> Refresher:
        assert self._refresher is not None, "an element has a number"
        return self._refresher


def _assume(learner: Learner, elements: Sequence[KnownElement], first: int) -> None:
    """Tells a learner the rates that were given."""
    for number, element in enumerate(elements, first):
        if element.rate is not None:
            learner.assume(number, element.rate)


def floors_of(elements: Sequence[KnownElement]) -> Floors:
    """What elements are promised."""
    ages = [math.inf if each.greatest_age is None else each.greatest_age for each in elements]
    return Floors(np.array([each.least_freshness for each in elements]), np.array(ages))


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
