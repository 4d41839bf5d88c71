"""A trial: how large and how often, and the runs made so far."""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from typing import Any, Self, TypeVar

from freshet.reproduce.kept import KeptRuns

Spec = TypeVar("Spec", bound=Hashable)
Result = TypeVar("Result")


class Trial:
    """Runs simulations for claims; each simulation runs only once, however many claims look at it.

    Args:
        quick: Scaled-down workloads, in minutes; otherwise the sizes of the papers.
        seeds: Number of repetitions with other draws; None: the mode's own number.
        jobs: Number of processes to use. They start when they are first needed, and end with the trial's ``with``.
        ran: Called after each run.
        kept: Where results are kept beyond this trial; None: nowhere.

    >>> trial = Trial(quick=True)
    >>> trial.map(abs, [-1, 2, -1]), trial.runs
    ([1, 2, 1], 2)
    """

    def __init__(
        self,
        *,
        quick: bool = True,
        seeds: int | None = None,
        jobs: int = 1,
        ran: Callable[[], None] | None = None,
        kept: KeptRuns | None = None,
    ) -> None:
        self.quick = quick
        self.seeds: Sequence[int] = range(seeds or 3)
        self.runs = 0
        self._jobs = jobs
        self._ran = ran or (lambda: None)
        self._kept = kept
        self._known: dict[tuple[Any, Hashable], Any] = {}
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        _leave_out_what_is_there()
        return self

    def __exit__(self, *error: object) -> None:
        gc.unfreeze()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def map(self, function: Callable[[Spec], Result], specs: Iterable[Spec]) -> list[Result]:
        """The results of a pure function; unknown ones are computed, in several processes if allowed."""
        wanted = list(specs)
        missing = [spec for spec in dict.fromkeys(wanted) if (function, spec) not in self._known]
        missing = [spec for spec in missing if not self._found(function, spec)]
        for spec, result in zip(missing, self._compute(function, missing), strict=True):
            if self._kept is not None:
                self._kept.save(function, spec, result)
            self._know(function, spec, result)
        return [self._known[function, spec] for spec in wanted]

    def _found(self, function: Callable[[Spec], Result], spec: Spec) -> bool:
        """Whether a result was kept; it is known from now on."""
        kept = self._kept.load(function, spec) if self._kept is not None else ()
        for result in kept:
            self._know(function, spec, result)
        return bool(kept)

    def _know(self, function: Callable[[Spec], Result], spec: Spec, result: Result) -> None:
        self._known[function, spec] = result
        self.runs += 1
        self._ran()

    def _compute(self, function: Callable[[Spec], Result], specs: Sequence[Spec]) -> Iterable[Result]:
        if self._jobs == 1 or len(specs) < 2:
            yield from map(function, specs)
            return
        if self._pool is None:
            # A fresh interpreter for each worker: a fork would copy the locks of threads in whatever state they are.
            self._pool = ProcessPoolExecutor(
                self._jobs, get_context("spawn"), initializer=_prepare, initargs=(function.__module__,)
            )
        yield from self._pool.map(function, specs)


def _prepare(module: str) -> None:
    """Loads what a process will run."""
    import_module(module)
    _leave_out_what_is_there()


def _leave_out_what_is_there() -> None:
    """Garbage collections leave out all modules: a simulation makes so many objects that there is a full collection in
    each, and most of its time would go into objects that stay."""
    gc.collect()
    gc.freeze()
