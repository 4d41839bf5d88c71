"""What a mirror remembers between runs, for people who look at its state folder."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from freshet.mirror import Elements
from freshet.sources.mirror.book import MirrorBook
from freshet.sources.mirror.content import Content
from freshet.sources.mirror.options import MirrorOptions
from freshet.sources.mirror.schedule import PollSchedule
from freshet.sources.mirror.status import ElementRate


def remembered_rates(options: MirrorOptions, records: Mapping[str, Any], common: Any) -> list[ElementRate]:
    """What is known of each element, those that are polled most often first."""
    now = time.time()
    book = MirrorBook(options, (), Content(None, {}), PollSchedule(options))
    book.recall(records, dict.fromkeys(records, ""), common, now)
    return book.rates(now)


def remembered_elements(options: MirrorOptions, records: Mapping[str, Any], common: Any) -> Elements:
    """The elements as a plan takes them."""
    rates = {each.element: each for each in remembered_rates(options, records, common)}
    names = list(rates)
    sizes = [records[name]["size"] or 1.0 if options.budget is None else 1.0 for name in names]
    return Elements.of(
        np.array([rates[name].changes_per_s or 0.0 for name in names]), [rates[name].worth for name in names], sizes
    )
