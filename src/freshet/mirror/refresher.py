"""What to poll next: the plan, first visits and exploration within one hard budget."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import ceil
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from freshet.mirror.again import start_after
from freshet.mirror.allowance import Allowance
from freshet.mirror.due_times import DueTimes
from freshet.mirror.elements import Elements, check_budget
from freshet.mirror.exploring import Exploring
from freshet.mirror.floors import Floors
from freshet.mirror.learning import Learner
from freshet.mirror.measures import freshness_of, perceived_freshness, weighted_mean
from freshet.mirror.plan import RefreshPlan, plan
from freshet.mirror.search import SearchStart
from freshet.mirror.surprise import Surprise
from freshet.model import UserError

Floats = NDArray[np.float64]

_SEEN: Final = 0.25
"""Polls per element after which a new plan may pay."""
_FEW: Final = 50
_PAYS: Final = 0.001
"""Relative gain of perceived freshness from which a new plan is adopted."""
_FOLLOW: Final = 5.0
_MOST: Final = 1 / 3
_SHIFT: Final = 0.01
"""Share of all worth that must go away or come back before a new plan may pay."""
_UNTELLING: Final = 2.5
"""Changes per poll above which the polls of the plan tell too little about a rate."""
_TELLING: Final = 1.6
"""Changes per gap at which one more poll tells most about a rate: (e^z - 1) / z^2 is least at z = 1.59."""


class Refresher:
    """Decides which elements to poll now; it has no clock of its own, and times are seconds of the caller's.

    Three lanes share the budget: elements that were never polled, the plan's polls at equal intervals, and the
    exploration of what the plan leaves out. An element that was handed out comes back by :meth:`polled` or
    :meth:`put_off`; until then it is not handed out again.

    Args:
        learner: What is known of the change rates; :meth:`polled` teaches it.
        worth: Worth of each element.
        sizes: What a poll of each element costs, in the unit of the budget.
        budget: What may be spent per second; it is kept over every ten seconds.
        exploration: Share of the budget for elements that the plan leaves out.
        floors: What elements are promised, or None. If that needs more than the budget, all get the same share of it,
            and :attr:`floors_need` says how much they need.
        known: Rates to plan with instead of the learned ones, or None.

    >>> refresher = Refresher(Learner(2), np.ones(2), np.ones(2), budget=1.0, exploration=0.0)
    >>> refresher.replan(0.0)
    True
    >>> [refresher.due(now, room=10) for now in (0.0, 0.5, 1.0)]
    [[0], [], [1]]
    >>> refresher.polled(0, 1.0, changed=False)
    """

    def __init__(
        self,
        learner: Learner,
        worth: Floats,
        sizes: Floats,
        budget: float,
        *,
        exploration: float = 0.02,
        floors: Floors | None = None,
        known: Floats | None = None,
    ) -> None:
        if not 0.0 <= exploration < 1.0:
            raise UserError(f"the share for exploration is {exploration}; it must be at least 0 and below 1")
        self.learner = learner
        self.budget = check_budget(budget)
        self.exploration = exploration
        self.plan: RefreshPlan | None = None
        self.surprise = Surprise()
        self._worth, self._sizes, self._floors, self._known = worth, sizes, floors, known
        self.floors_need = 0.0
        """Budget that the floors need by the rates of the last plan."""
        self._allowance = Allowance(budget)
        self._new: deque[int] = deque()
        self._due = DueTimes(len(learner))
        self._flying: set[int] = set()
        self._away: dict[int, float] = {}  # elements that do not answer, and how often they were polled before
        self._away_worth = 0.0
        self._exploring = Exploring()
        self._credit = 0.0
        self._since_plan = 0
        self._share = exploration
        self._before: RefreshPlan | None = None  # the last plan that was made, adopted or not
        self._restored: SearchStart | None = None
        self._turn = False
        self.frequencies = np.zeros(len(learner))
        """Polls per second of each element, as planned."""
        self._rates = np.full(len(learner), learner.prior.mean)
        self._new.extend(np.flatnonzero(np.isnan(learner.last_polls())).tolist())

    def due(self, now: float, room: int) -> list[int]:
        """At most ``room`` elements to poll now, as far as the budget allows; what they cost is spent."""
        chosen: list[int] = []
        while len(chosen) < room:
            lane, element = self._choose(now)
            if element is None or not self._allowance.take(now, cost := float(self._sizes[element])):
                break
            self._take(lane, element, now, cost)
            chosen.append(element)
        return chosen

    def next_due(self, now: float) -> float:
        """Seconds until :meth:`due` may hand out something; infinite if nothing is known to come."""
        _, element = self._choose(now)
        if element is not None:
            return self._allowance.wait(now, float(self._sizes[element]))
        return self._due.wait(now)

    def polled(
        self,
        element: int,
        now: float,
        changed: bool,
        last_modified: float | None = None,
        *,
        cost: float | None = None,
    ) -> None:
        """Takes in the answer of a poll, and decides when the element is due again.

        Args:
            element: Number of the element.
            now: When it was polled.
            changed: Whether it differs from what was known; of no meaning at its first poll.
            last_modified: When it changed last, if it says so.
            cost: What the poll cost, if not the size that was expected.
        """
        last = self.learner.last_poll(element)
        if last is not None and now > last:
            self.surprise.saw(rate=float(self._rates[element]), seconds=now - last, changed=changed)
        self.learner.polled(element, now, changed, last_modified)
        if cost is not None:
            self._allowance.charge(now, cost - float(self._sizes[element]))
        self._since_plan += 1
        self._flying.discard(element)
        if element in self._away:
            self.frequencies[element] = self._away.pop(element)
        if frequency := float(self.frequencies[element]):
            self._due.next(element, now, 1.0 / frequency)
        else:
            self._due.drop(element)

    def put_off(self, element: int, until: float) -> None:
        """The element could not be polled: it is due again at this time, and plans are made without it until then."""
        self._flying.discard(element)
        self._due.put(element, until)
        self.leave(element)

    def leave(self, element: int) -> None:
        """Plans are made without an element until it is polled; when it is due does not change."""
        if np.isfinite(self._due.times[element]):
            self._away.setdefault(element, float(self.frequencies[element]))

    def charge(self, now: float, cost: float) -> None:
        """Spends budget on what nobody asked for in advance: retries, redirects, audits."""
        self._allowance.charge(now, cost)

    def take(self, now: float, cost: float) -> bool:
        """Spends budget on a poll that the caller chose (an audit), if there is room for it."""
        return self._allowance.take(now, cost)

    def add(self, worth: Floats, sizes: Floats, known: Floats | None = None, floors: Floors | None = None) -> None:
        """Adds elements, one for each value; they have the next numbers, and are polled as soon as possible."""
        count, before = len(worth), len(self.learner)
        self.learner.add(count)
        self._worth, self._sizes = np.append(self._worth, worth), np.append(self._sizes, sizes)
        self._due.add(count)
        self.frequencies = np.append(self.frequencies, np.zeros(count))
        self._rates = np.append(self._rates, np.full(count, self.learner.prior.mean))
        new = floors or Floors(np.zeros(count), np.full(count, np.inf))
        if self._floors is not None or floors is not None:
            old = self._floors or Floors(np.zeros(before), np.full(before, np.inf))
            self._floors = old.and_more(new.freshness, new.age)
        if self._known is not None:
            self._known = np.append(self._known, np.full(count, self.learner.prior.mean) if known is None else known)
        self._new.extend(range(before, before + count))
        self.plan = None

    def set_worth(self, element: int, worth: float) -> None:
        """An element is worth more or less; the next plan knows it. One that is worth nothing is not polled again."""
        self._worth[element] = worth
        if worth == 0.0:
            self.frequencies[element] = 0.0
            self._away.pop(element, None)
            self._due.drop(element)
        elif self._forgotten(element):
            self._new.append(element)
        self.plan = None

    def _forgotten(self, element: int) -> bool:
        """Whether an element was never polled, and nothing would ever poll it."""
        waits = np.isfinite(self._due.times[element]) or element in self._flying
        return self.learner.last_poll(element) is None and not waits and element not in self._new

    def weigh(self, worth: Floats) -> None:
        """All elements are worth something else; the next plan is due at once, and is used if it pays."""
        nothing = (worth == 0.0) & (self._worth > 0.0)
        self._worth = worth.copy()
        self.frequencies = np.where(nothing, 0.0, self.frequencies)
        self._away = {element: frequency for element, frequency in self._away.items() if not nothing[element]}
        self._due.drop(nothing)
        self._since_plan = max(self._since_plan, self._enough)

    def set_floor(self, element: int, freshness: float, age: float) -> None:
        """An element is promised something else; the next plan keeps it."""
        count = len(self.learner)
        if self._floors is None:
            self._floors = Floors(np.zeros(count), np.full(count, np.inf))
        self._floors.freshness[element], self._floors.age[element] = freshness, age
        self.plan = None

    def set_known(self, element: int, rate: float) -> None:
        """An element has another known rate; of no meaning if rates are learned."""
        if self._known is not None:
            self._known[element] = rate
            self.plan = None

    def set_size(self, element: int, size: float) -> None:
        """A poll of an element costs more or less than was expected; the next plan knows it."""
        self._sizes[element] = size

    def rates(self) -> Floats:
        """Changes per second that it plans with: the known ones, or those that were learned so far."""
        return self.learner.rates() if self._known is None else self._known.copy()

    def wants_replan(self) -> bool:
        """Whether enough was seen since the last plan that a new one may pay."""
        if self.plan is None or self._since_plan >= self._enough:
            return True
        return abs(self._worth_away() - self._away_worth) > _SHIFT * float(self._worth.sum())

    def _worth_away(self) -> float:
        return float(self._worth[list(self._away)].sum())

    def _of_those_here(self, values: Floats) -> Floats:
        """A copy of the values, with 0 for elements that do not answer."""
        here = values.copy()
        here[list(self._away)] = 0.0
        return here

    @property
    def perceived(self) -> float | None:
        """Perceived freshness that the plan reaches; elements that do not answer count as not fresh."""
        return None if self.plan is None else weighted_mean(self._of_those_here(self.plan.freshness), self._worth)

    @property
    def _enough(self) -> int:
        """Polls after which a new plan may pay."""
        return max(_FEW, ceil(_SEEN * len(self.learner)))

    def replan(self, now: float, *, always: bool = False) -> bool:
        """Plans with the rates of now, and adopts the plan if it gains enough (CAR §6.2.4).

        Args:
            now: The time.
            always: Adopt it in any case.

        Returns:
            Whether the plan was adopted.
        """
        self._since_plan = 0
        if self._known is None:
            self.learner.fit_prior()
        self._rates = self.rates()
        elements = Elements(self._rates, self._of_those_here(self._worth), self._sizes.copy())
        self._away_worth = self._worth_away()
        self._share = self.share()
        self._before = new = self._plan(elements)
        adopted = always or self._pays(elements, new)
        if adopted:
            self.plan, self.frequencies = new, new.frequencies.copy()
            self._due.spread(now, self.learner.last_polls(), self.frequencies, list(self._away))
        self._explore()
        return adopted

    def share(self) -> float:
        """Share of the budget for exploration: more if polls surprise, up to a third."""
        if self.exploration == 0.0:
            return 0.0
        return min(self.exploration * (1.0 + _FOLLOW * self.surprise.excess), max(self.exploration, _MOST))

    def freshness(self) -> Floats:
        """Estimated freshness of each element by the rates of the last plan."""
        return freshness_of(Elements(self._rates, self._worth, self._sizes), self.frequencies)

    def state(self) -> dict[str, Any]:
        """Due times and frequencies, as arrays by name; the learner has a state of its own."""
        mu = 0.0 if self.plan is None else self.plan.mu
        return {"due": self._due.times.copy(), "frequencies": self.frequencies.copy(), "mu": mu}

    def restore(self, state: Mapping[str, Any], now: float) -> None:
        """Takes back what :meth:`state` gave; the learner must have been restored before."""
        count = len(self.learner)
        due, frequencies = (np.asarray(state[name], dtype=np.float64)[:count] for name in ("due", "frequencies"))
        self.frequencies[: len(frequencies)] = frequencies
        self._due.replace(np.append(due, self._due.times[len(due) :]))
        self._restored = SearchStart(float(state["mu"]))
        never = np.isnan(self.learner.last_polls()) & ~np.isfinite(self._due.times)
        self._new = deque(np.flatnonzero(never).tolist())

    def _plan(self, elements: Elements) -> RefreshPlan:
        """A plan for what exploration leaves; for everything if there is nothing to explore. Floors come first."""
        least, self.floors_need = None, 0.0
        if self._floors:
            floors = Floors(self._of_those_here(self._floors.freshness), self._floors.age.copy())
            floors.age[list(self._away)] = np.inf
            least, self.floors_need = floors.within(elements, self.budget)
            self._share = min(self._share, max(0.0, 1.0 - self.floors_need / self.budget))
        start = self._restored if self._before is None else start_after(self._before, elements, least)
        made = plan(elements, (1.0 - self._share) * self.budget, least=least, start=start)
        if self._share and not len(self._left_out(made)):
            self._share = 0.0
            return plan(elements, self.budget, least=least, start=start_after(made, elements, least))
        return made

    def _pays(self, elements: Elements, new: RefreshPlan) -> bool:
        """Whether a plan gains enough over the frequencies in use, if the plan of these had had the same budget."""
        old = self.plan
        if old is None or self._floors:  # a floor is kept also where that gains nothing
            return True
        # What has come back is polled besides the plan.
        spent = max(old.spent, float(elements.sizes @ self.frequencies))
        scale = new.spent / spent if spent > 0.0 else 0.0
        return new.perceived - perceived_freshness(elements, self.frequencies * scale) >= _PAYS * new.perceived

    def _left_out(self, made: RefreshPlan) -> NDArray[np.intp]:
        """Elements of worth that the plan never polls, or so rarely that each poll finds a change anyway."""
        rarely = made.frequencies * _UNTELLING < self._rates
        return np.flatnonzero((self._of_those_here(self._worth) > 0.0) & rarely & ~np.isnan(self.learner.last_polls()))

    def _explore(self) -> None:
        assert self.plan is not None
        some = self._left_out(self.plan) if self._share else np.empty(0, dtype=np.intp)
        threshold = self._worth[some] / np.maximum(self.plan.mu * self._sizes[some], 1e-300)
        seconds = float(self._sizes[some].sum()) / max(self._share * self.budget, 1e-300)
        gaps = _TELLING / np.maximum(np.minimum(threshold, self._rates[some]), 1e-300)
        self._exploring.begin(some, self.learner.last_polls()[some], gaps, round_seconds=seconds)

    def _choose(self, now: float) -> tuple[str, int | None]:
        """The lane whose turn it is, and its element."""
        if self._credit > 0.0 and (element := self._exploring.next(now)) is not None:
            if element not in self._flying and element not in self._away:
                return "explore", element
            self._exploring.taken(now)
        planned = self._due.first(now, self._flying)
        if self._new and (planned is None or self._turn):
            return "new", self._new[0]
        return "plan", planned

    def _take(self, lane: str, element: int, now: float, cost: float) -> None:
        if lane == "explore":
            self._exploring.taken(now)
            self._credit -= cost
        elif lane == "new":
            self._new.popleft()
        else:
            self._due.take()
        self._turn = lane != "new"
        if len(self._exploring):
            self._credit = min(self._credit + self._share * cost, self.budget)
        self._flying.add(element)
