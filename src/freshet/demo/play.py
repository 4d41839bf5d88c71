"""Plays the story: the application runs, is watched, and its rows are counted afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import freshet
from freshet.demo.counts import readings, unanswered
from freshet.demo.finished import FinishedDemo
from freshet.demo.monitor import LOGINS, MASTER, PACKETS, monitor, options
from freshet.demo.stories import Watch
from freshet.demo.story import Story
from freshet.demo.timeline import Timeline, sample
from freshet.log import LogReader

LOOK: Final = 0.25
"""Seconds between samples."""


def play(folder: Path, story: Story, policy: str | None, tell: Callable[[str], None], watch: Watch) -> FinishedDemo:
    """Runs the monitor through a story, and until everything that came is answered.

    Args:
        folder: Folder for the state and the report.
        story: What happens.
        policy: A policy instead of the declared one.
        tell: Called with a text at the start.
        watch: Called a few times a second.
    """
    app = _app(folder, story)
    read, course = readings(app), Timeline()
    with app.start(policy=policy, master=MASTER, progress=lambda text: tell(f"{text} ...")) as run:
        start = run.meters()["time"]
        over = False
        while not over:
            ended = run.wait(LOOK)
            report = run.report()
            course.samples.append(sample(report, start))
            watch(report, course.samples[-1].time)
            over = ended and _done(read, report)
        jobs = _jobs(run)
    left = unanswered(read, run.report())
    with LogReader(app.state) as log:
        outputs = {name: log.end(name) for name in app.queries}
    # The report of the last look: otherwise the time that it takes to stop would count as fresh.
    return FinishedDemo(story, report, course, left, outputs, jobs)


def _app(folder: Path, story: Story) -> freshet.App:
    declared = options(monitor(folder), LOGINS)["arrival"]
    # Without a limit the application would not end when the packets do.
    limit = round(declared["rate"] * story.seconds)
    return monitor(folder, {PACKETS: {"arrival": story.arrival()}, LOGINS: {"limit": limit}})


def _done(read: Mapping[str, Mapping[str, int]], report: Mapping[str, Any]) -> bool:
    """Whether every query has answered everything; a quarantined query never will."""
    left = unanswered(read, report)
    return all(not left[name] or query["state"] != "active" for name, query in report["queries"].items())


def _jobs(run: freshet.Run) -> int:
    """How many jobs Spark has run: Spark numbers them from 0 on, so the number of one more job tells."""
    frame = run.dataframe(LOGINS)
    frame.limit(1).toArrow()
    return max(frame.sparkSession.sparkContext.statusTracker().getJobIdsForGroup(None))
