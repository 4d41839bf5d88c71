"""What a mirror remembers between runs, for people who look at its state folder."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from freshet.mirror import Elements
from freshet.mirror.floors import Floors
from freshet.sources.mirror.book import MirrorBook
from freshet.sources.mirror.options import MirrorOptions
from freshet.sources.mirror.polling.content import Content
from freshet.sources.mirror.schedule import PollSchedule, floors_of
from freshet.sources.mirror.status import ElementRate


class RememberedMirror:
    """The elements of a mirror that does not run, or of one that runs elsewhere, with the plan that it would make.

    Args:
        options: Of the mirror.
        records: What was committed of each element.
        common: What was learned of all elements together.
    """

    def __init__(self, options: MirrorOptions, records: Mapping[str, Any], common: Any) -> None:
        self._now = time.time()
        self._in_bytes = options.budget is None
        self._book = MirrorBook(options, (), Content(None, {}), PollSchedule(options))
        self._book.recall(records, dict.fromkeys(records, ""), common, self._now)
        self._book.schedule.replan(self._now, always=True)

    def rates(self) -> list[ElementRate]:
        """What is known of each element, those that are polled most often first."""
        return self._book.rates(self._now)

    @property
    def planned(self) -> float | None:
        """Perceived freshness that the plan reaches on average; what fails counts as not fresh."""
        return self._book.schedule.planned

    @property
    def polled(self) -> int:
        """Number of elements that the plan polls."""
        return int(np.count_nonzero(self._book.schedule.frequencies()))

    @property
    def failing(self) -> int:
        """Number of elements whose last poll failed."""
        return sum(known.failures > 0 for known in self._book.elements)

    @cached_property
    def elements(self) -> Elements:
        """The elements as a plan takes them; those that fail are worth nothing."""
        known = self._book.elements
        sizes = [each.expected_size if self._in_bytes else 1.0 for each in known]
        return Elements.of(self._book.schedule.rates(), [0.0 if each.failures else each.worth for each in known], sizes)

    @property
    def floors(self) -> Floors | None:
        """What elements are promised; None: nothing."""
        return floors_of(self._book.elements) or None
