"""Notes how long steps took, as an observer of the engine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from freshet.engine import Event, RealClock
from freshet.engine.board import Board
from freshet.engine.events import Committed, Failed, Returned, Submitted
from freshet.engine.lines import CANCELLED
from freshet.model import OperatorRun, UnitResult

PARTS: Final = ("decide", "bind", "send", "work", "report", "commit")
"""The parts of a step, for both ways. ``decide``: queues, meters, policy, and binding operators to trains; ``bind``:
finding the plan and describing the trains to it; ``send``: to a resident, or to the thread that submits the job and
back; ``work``: operators and output, of a resident with the file; ``report``: the way back, of a job all of Spark's job
that is not work; ``commit``: syncing the file, unless it is large, and cursors and output in the store."""


@dataclass(frozen=True, slots=True)
class StepNote:
    """One step, from the moment at which the engine could begin it to the end of its commit.

    Args:
        seconds: All of its time.
        work: Seconds in operators, by the wall clock.
        members: Number of chains that it ran.
        runs: What the operators did, by name.
        parts: Its seconds by part (:data:`PARTS`); they add up to ``seconds``.
        submitted: When the executor got it, on the counter of :func:`time.perf_counter`.
        committed: When it was committed, on the same counter.
        written: Number of rows by output and queue.
    """

    seconds: float
    work: float
    members: int
    runs: tuple[tuple[str, OperatorRun], ...]
    parts: Mapping[str, float] = field(default_factory=dict)
    submitted: float = 0.0
    committed: float = 0.0
    written: Mapping[str, int] = field(default_factory=dict)

    @property
    def overhead(self) -> float:
        """Everything that is not work: deciding, planning, Spark's job, the file, the commit."""
        return self.seconds - self.work


class NotingClock(RealClock):
    """The wall clock; it notes when a wait ends."""

    def __init__(self) -> None:
        super().__init__()
        self.free = 0.0
        """Since when the engine could begin a step, on the counter of :func:`time.perf_counter`."""

    def wait(self, until: float | None) -> bool:
        waited = super().wait(until)
        self.free = time.perf_counter()
        return waited


class StepNotes:
    """An observer that keeps a note of each step. If several run at once, the times of their parts overlap.

    Args:
        clock: The engine's.
    """

    def __init__(self, clock: NotingClock) -> None:
        self._clock = clock
        self._running: dict[str, list[float]] = {}
        self.board: Board
        self.steps: list[StepNote] = []

    def begin(self) -> None:
        """Forgets earlier notes; the engine may begin a step from now on."""
        self.steps = []
        self._clock.free = time.perf_counter()

    def tell(self, event: Event) -> None:
        """Notes an event.

        Raises:
            RuntimeError: A step could not run, so the measurement would mean nothing.
        """
        now = time.perf_counter()
        match event:
            case Submitted(unit=unit):
                self._running[unit.id] = [self._clock.free, now]
            case Returned(result=result):
                self._running[result.unit.id].append(now)
            case Failed(result=result):
                del self._running[result.unit.id]
                if result.retry != CANCELLED:
                    raise RuntimeError(f"a step could not run: {result.retry}")
            case Committed(result=result):
                began, submitted, returned = self._running.pop(result.unit.id)
                self._clock.free = now
                self.steps.append(self._note(result, began, submitted, returned, now))

    def _note(self, result: UnitResult, began: float, submitted: float, returned: float, now: float) -> StepNote:
        runs = [run for chain in result.chains for run in chain.operators]
        seconds = sum(run.seconds for run in runs)
        work = max(0.0, result.finished - result.started - result.overhead)
        # Tasks run side by side: their seconds count by the wall time that they took.
        share = work / seconds if seconds else 1.0
        noted = tuple(
            (
                self.board.operators[run.operator].node.name,
                OperatorRun(run.operator, run.rows_in, run.rows_out, run.seconds * share),
            )
            for run in runs
        )
        parts = _parts(result, work, submitted - began, returned - submitted) | {"commit": now - returned}
        written = {stream: done.rows_out for done in result.chains for stream in done.chain.writes}
        return StepNote(now - began, work, len(result.chains), noted, parts, submitted, now, written)


def _parts(result: UnitResult, work: float, before: float, away: float) -> dict[str, float]:
    """The parts of a step up to its return, which was submitted after ``before`` seconds and was ``away`` for some."""
    told = result.parts
    if "send" in told:
        # The engine's own thread binds and sends, before it says that the unit is submitted.
        bind, send = told["plan"], told["send"]
        found = (before - bind - send, bind, send, told["work"], away - told["work"])
    else:
        job = told["job"]
        found = (before, told["plan"], away - told["plan"] - job, work, job - work)
    return dict(zip(PARTS, found, strict=False))
