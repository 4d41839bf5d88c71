"""The executor: worker threads that run units as Spark jobs."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from freshet.kernels.parting import OVERHEAD
from freshet.kernels.shuffling import MOST_BYTES
from freshet.model import Chain, FreshetError, Node, State, Unit, UnitResult
from freshet.spark.analysis import Analysis
from freshet.spark.assignment import forget_leftovers
from freshet.spark.failures import Retry, message, retry_reason
from freshet.spark.installation import Form, Installation
from freshet.spark.isolate import Works, isolate
from freshet.spark.jobs import Jobs
from freshet.spark.report import TaskReport
from freshet.spark.results import Outcome
from freshet.spark.spec import Spec
from freshet.spark.stages import Stages

_MOST_TAGS: Final = 16
_TAGS: Final = "spark.job.tags"


class SparkExecutor:
    """Runs units on Spark; implements :class:`freshet.engine.protocols.Executor`.

    Args:
        session: From :func:`freshet.spark.session.open_session`.
        state: The state folder; trains are read from and outputs written to its ``segments``.
        slots: Units that may run at once; each has a thread that submits its jobs.
        wake: Called from a worker thread when a unit has finished.
        clock: Seconds since the epoch.
        vectorise: Whether chains that can be compiled are; False runs all of them in Spark's own form.
        most_join_bytes: Bytes that a join may look at in one task; larger ones go through a shuffle.
        part_overhead: Seconds that a second job takes, to judge whether an aggregate merges a train in parts.
    """

    def __init__(
        self,
        session: SparkSession,
        state: Path,
        *,
        slots: int = 2,
        wake: Callable[[], None],
        clock: Callable[[], float] = time.time,
        vectorise: bool = True,
        most_join_bytes: int = MOST_BYTES,
        part_overhead: float = OVERHEAD,
    ) -> None:
        self.slots = slots
        self._context = session.sparkContext
        self._state = state.resolve()
        self._wake = wake
        self._clock = clock
        self._installation = Installation(Analysis(session), vectorise)
        self._jobs = Jobs(session, self._state, self._installation, most_join_bytes, part_overhead)
        self._fail_on_error: frozenset[str] = frozenset()
        forget_leftovers(self._state / "specs")
        self._spec = Spec((), (), {}).store(self._state / "specs")
        self._changed = threading.Condition()
        self._waiting: deque[Unit] = deque()
        self._running: dict[str, str] = {}
        self._cancelled: set[str] = set()
        self._results: list[UnitResult] = []
        self._closing = False
        self._threads = [
            threading.Thread(target=self._work, name=f"freshet-worker-{number}", daemon=True) for number in range(slots)
        ]
        for thread in self._threads:
            thread.start()

    def install(
        self, nodes: Sequence[Node], schemas: Mapping[str, pa.Schema], fail_on_error: AbstractSet[str]
    ) -> Mapping[str, pa.Schema]:
        """Prepares for these operators; returns the schemas of the queries' outputs by query name.

        Raises:
            UserError: Spark does not accept an expression; then nothing was installed.
        """
        spec = self._installation.extend(nodes, schemas).store(self._state / "specs")
        with self._changed:
            self._spec = spec
            self._fail_on_error = frozenset(fail_on_error)
            needed = {spec, *self._running.values()}
        for file in (self._state / "specs").glob("*.json"):
            if file.stem not in needed:
                file.unlink(missing_ok=True)
        return dict(self._installation.outputs)

    def form(self, numbers: Sequence[int]) -> tuple[Form, str]:
        """The physical form of a chain of installed operators, and why."""
        return self._installation.form(numbers)

    def states(self, fold: str) -> int:
        """How many state streams an installed fold has."""
        return self._installation.states(fold)

    def warm_up(self, rounds: int = 10) -> None:
        """Runs empty jobs, so that the first units find Python workers and compiled Java code."""
        for _ in range(rounds):
            self._jobs.probe(self._spec)
            self._jobs.probe(self._spec, self._jobs.cores)

    def submit(self, unit: Unit) -> None:
        """Starts a unit as soon as a worker is idle."""
        with self._changed:
            self._waiting.append(unit)
            self._changed.notify()

    def finished(self) -> list[UnitResult]:
        """Units that finished since the last call; does not wait.

        Raises:
            FreshetError: Spark's JVM has ended: no try of any unit can succeed any more.
        """
        with self._changed:
            results, self._results = self._results, []
        if any(result.retry is not None for result in results) and self._is_gone():
            raise FreshetError("Spark's JVM has ended (see spark.out in the state folder); start again to go on")
        return results

    def _is_gone(self) -> bool:
        process = getattr(self._context._gateway, "proc", None)
        return process is not None and process.poll() is not None

    def next_finish(self) -> float | None:
        """Unknown: this is the real world."""
        return None

    def cancel(self, unit_id: str) -> None:
        """Asks for a unit to be given up; it comes back with ``retry="cancelled"``.

        A Python worker may go on for a moment and write its file; nobody commits it.
        """
        with self._changed:
            queued = [unit for unit in self._waiting if unit.id == unit_id]
            for unit in queued:
                self._waiting.remove(unit)
            running = unit_id in self._running
            if running:
                self._cancelled.add(unit_id)
        for unit in queued:
            now = self._clock()
            self._finish(UnitResult(unit, now, now, retry="cancelled"))
        if running:
            self._context.cancelJobGroup(unit_id)

    def close(self) -> None:
        """Stops the workers; units that are running are cancelled and not reported."""
        with self._changed:
            self._closing = True
            self._waiting.clear()
            running = list(self._running)
            self._cancelled.update(running)
            self._changed.notify_all()
        for unit in running:
            # A Spark that is gone has no job left to cancel, and must not keep anyone from closing.
            with suppress(Exception):
                self._context.cancelJobGroup(unit)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if self._closing:
                    return
                unit = self._waiting.popleft()
                self._running[unit.id] = spec = self._spec
            self._finish(self._run(unit, spec))

    def _finish(self, result: UnitResult) -> None:
        with self._changed:
            self._running.pop(result.unit.id, None)
            self._cancelled.discard(result.unit.id)
            self._results.append(result)
        self._wake()

    def _run(self, unit: Unit, spec: str) -> UnitResult:
        started = self._clock()
        began = time.perf_counter()
        parts: dict[str, float] = {}
        outcome = Outcome(self._installation, self._fail_on_error)
        try:
            self._describe(unit)
            for form, works in self._jobs.split(unit.works, unit.states):
                self._run_job(unit, spec, form, works, outcome, parts)
            self._check(unit)
            chains = outcome.chains(unit)
        except Exception as error:
            # Whatever it is, the unit comes back: an engine that waits for it for ever would be worse.
            reason = retry_reason(error) or message(error)
            if unit.id in self._cancelled:
                reason = "cancelled"
            return UnitResult(unit, started, self._clock(), retry=reason, parts=parts)
        overhead = max(time.perf_counter() - began - outcome.busy, 0.0)
        return UnitResult(unit, started, self._clock(), chains, tuple(outcome.files), overhead, None, parts)

    def _run_job(
        self, unit: Unit, spec: str, form: Form, works: Works, outcome: Outcome, parts: dict[str, float]
    ) -> None:
        def run(some: Works) -> list[TaskReport]:
            self._check(unit)
            return self._jobs.run(unit.id, spec, form, some, parts, unit.states, unit.tables)

        def together(chain: Chain) -> object:
            query = self._installation.query(chain.operators[0])
            return query if self._installation.folds(chain.operators) else chain

        if form == "staged":
            self._run_stages(unit, spec, works, outcome, parts)
            return
        for done, result in isolate(works, run, lambda: self._suspect(spec), together):
            if isinstance(result, str):
                outcome.failed(done, result)
            else:
                outcome.succeeded(done, result)

    def _run_stages(self, unit: Unit, spec: str, works: Works, outcome: Outcome, parts: dict[str, float]) -> None:
        def run(form: Form, some: Works, states: tuple[State, ...]) -> list[TaskReport]:
            self._check(unit)
            return self._jobs.run(unit.id, spec, form, some, parts, states, unit.tables)

        states = {state.fold: state for state in unit.states}
        stages = Stages(self._installation, outcome, states, run, self._jobs.spread)
        try:
            stages.chains(works)
        except Exception as error:
            if reason := retry_reason(error):
                raise Retry(reason) from error
            self._suspect(spec)
            outcome.failed(works, message(error))

    def _suspect(self, spec: str) -> None:
        try:
            self._jobs.probe(spec)
        except Exception as error:
            raise Retry(f"Spark runs no job: {message(error)}") from error

    def _check(self, unit: Unit) -> None:
        if unit.id in self._cancelled:
            raise Retry("cancelled")

    def _describe(self, unit: Unit) -> None:
        """Names the jobs that this thread submits from now on, for whoever looks at Spark or cancels."""
        queries = dict.fromkeys(
            self._installation.query(chain.operators[0]) for work in unit.works for chain in work.chains
        )
        names = list(queries)[:_MOST_TAGS]
        more = f" and {len(queries) - len(names)} more" if len(queries) > len(names) else ""
        self._context.setJobGroup(unit.id, f"{', '.join(names)}{more}: {unit.rows} tuples", True)
        # What addJobTag sets, in one call to the JVM instead of one per tag.
        self._context.setLocalProperty(_TAGS, ",".join(name.replace(",", " ") for name in names))
