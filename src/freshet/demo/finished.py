"""Everything that was seen in a run of the demo: the picture and the words are made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from freshet.demo.story import Story
from freshet.demo.timeline import Timeline, TimelineSample
from freshet.demo.worth import GROUPS, group

Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FinishedDemo:
    """A run that is over.

    Args:
        story: What was to happen.
        report: The report of the run, when everything that came was answered.
        course: How it went.
        unanswered: By query, the number of tuples that it has not answered; below 0: answered twice.
        outputs: By query, the number of tuples in its output log.
        jobs: Number of Spark jobs.
    """

    story: Story
    report: Figures
    course: Timeline
    unanswered: Mapping[str, int]
    outputs: Mapping[str, int]
    jobs: int

    def groups(self) -> dict[str, dict[str, Figures]]:
        """The queries that have answered anything, by group of worth, the worthiest first."""
        ranked = sorted(self.report["queries"].items(), key=lambda item: (-item[1]["weight"], item[0]))
        found: dict[str, dict[str, Figures]] = {name: {} for name in GROUPS}
        for name, query in ranked:
            found[group(query["weight"])][name] = query
        return {name: queries for name, queries in found.items() if queries}

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self)

    @staticmethod
    def from_json(values: Figures) -> FinishedDemo:
        """Restores it from :meth:`to_json`."""
        course = Timeline([TimelineSample(**sample) for sample in values["course"]["samples"]])
        return FinishedDemo(**{**values, "story": Story(**values["story"]), "course": course})


def mean_response(queries: Mapping[str, Figures]) -> float | None:
    """The mean of the queries' mean response times; None if none has answered anything."""
    known = [query["response"]["mean_s"] for query in queries.values() if query["response"]["mean_s"] is not None]
    return fmean(known) if known else None


def mean_fresh(queries: Mapping[str, Figures]) -> float:
    """The mean of the queries' freshness (FAS Eq. 3)."""
    return fmean(query["freshness"] for query in queries.values())
