"""Runs the same log in another way: cut into other trains, by other policies, with crashes and faults."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

import pyarrow as pa

from freshet.app import App
from freshet.policies import Policy, create
from freshet.sources.push import PushedRows, as_rows
from freshet.testing.faults import Faults, Killed, check_share
from freshet.testing.local_run import LocalRun
from freshet.testing.policies import OneBox, RandomSteps, RandomStrategies
from freshet.testing.script import Heartbeat, Push, Put, Script

POLICIES: Final = (
    RandomSteps.name, OneBox.name, "everything", "fcfs", "rr(1)", "rr(3)", "fas-mcq", "fas-mcq+set", "rb-mcq+set",
    "baat", "taat", "aaat-min-latency", "slope-slack", RandomStrategies.name, "pcs(2)", "segment(3)",
)  # fmt: skip
"""Policies that a schedule may draw: those for tests, and one of each kind that an application can have."""


def make_policy(name: str, seed: int = 0) -> Policy:
    """The policy with a name; it may be one for tests.

    >>> type(make_policy("one-box")).__name__, type(make_policy("fcfs")).__name__
    ('OneBox', 'FirstComeFirstServed')
    """
    if name == RandomSteps.name:
        return RandomSteps(seed)
    if name == RandomStrategies.name:
        return RandomStrategies(seed)
    return OneBox() if name == OneBox.name else create(name)


@dataclass(frozen=True, slots=True)
class Schedule:
    """One way to run a log. The log stays the same: what comes, in which order, and when it arrives.

    Args:
        policies: The first policy, and the policy after each crash; the last one stays.
        workers: Maximum number of units at once.
        max_train_rows: Maximum number of tuples in a train.
        seed: Draws how the rows are cut, when turns are taken, crashes, faults, and the order in which units finish.
        cut: Whether rows come in pieces, with turns between them. Otherwise all are there before anything runs.
        crashes: How often the process dies between two pieces, from 0 to 1.
        faults: How often something goes wrong at a point where it can, from 0 to 1; see :class:`Faults`.
        resplits: Share of the units before which states are divided anew, into parts by key, from 0 to 1.
    """

    policies: tuple[str, ...] = ("everything",)
    workers: int = 1
    max_train_rows: int = 500_000
    seed: int = 0
    cut: bool = False
    crashes: float = 0.0
    faults: float = 0.0
    resplits: float = 0.0

    def __post_init__(self) -> None:
        for name in ("crashes", "faults", "resplits"):
            check_share(name, getattr(self, name))

    @classmethod
    def drawn(cls, seed: int, policies: Sequence[str] = POLICIES) -> Self:
        """Draws a schedule at random.

        >>> Schedule.drawn(7) == Schedule.drawn(7)
        True
        """
        draw = random.Random(seed)
        return cls(
            tuple(draw.choice(policies) for _ in range(3)),
            workers=draw.randint(1, 3),
            max_train_rows=draw.choice((1, 2, 7, 500_000)),
            seed=seed,
            cut=True,
            crashes=draw.choice((0.0, 0.0, 0.05, 0.2)),
            faults=draw.choice((0.0, 0.02, 0.1)),
            resplits=draw.choice((0.0, 0.1, 0.5)),
        )

    def play(self, app: App, script: Script) -> LocalRun:
        """Runs everything that a script says, closes all windows, and returns the run; the caller closes it."""
        faults = Faults.at_random(self.seed, self.faults)
        run = LocalRun(
            app,
            policy=make_policy(self.policies[0], self.seed),
            workers=self.workers,
            max_train_rows=self.max_train_rows,
            seed=self.seed,
            tables=script.tables,
            faults=faults,
            resplits=self.resplits,
        )
        try:
            _Play(self, run).play(script)
        except BaseException:
            run.close()
            raise
        return run


class _Play:
    """A schedule at work."""

    def __init__(self, schedule: Schedule, run: LocalRun) -> None:
        self._schedule, self._run = schedule, run
        self._random = random.Random(schedule.seed)
        self._crashes = 0

    def play(self, script: Script) -> None:
        run = self._run
        for event in script.events:
            match event:
                case Push(stream, rows, at):
                    for piece in self._pieces(rows):
                        run.push(stream, piece, at=at)
                        self._between()
                case Heartbeat(stream, time):
                    run.heartbeat(stream, time)
                    self._between()
                case Put(table, rows):
                    run.put(table, rows)
                    self._between()
        self._go(run.drain)
        run.close_windows()
        self._go(run.drain)

    def _pieces(self, rows: PushedRows) -> Iterator[PushedRows]:
        """The same rows in order, in one piece or in many."""
        whole, first = as_rows(rows), 0
        while self._schedule.cut and first < len(whole):
            size = self._random.choice((1, 2, self._random.randint(1, len(whole))))
            piece = (
                whole.slice(first, size)
                if isinstance(whole, pa.Table | pa.RecordBatch)
                else whole[first : first + size]
            )
            yield piece
            first += size
        if not self._schedule.cut:
            yield whole

    def _between(self) -> None:
        """What happens between two pieces."""
        if not self._schedule.cut:
            return
        for _ in range(self._random.randint(0, 4)):
            self._go(self._run.turn)
        if self._random.random() < self._schedule.crashes:
            self._crash()

    def _go(self, work: Callable[[], object]) -> None:
        """Does some work. If the process dies over it, another process continues."""
        while True:
            try:
                work()
                return
            except Killed:
                self._crash()

    def _crash(self) -> None:
        self._crashes += 1
        names = self._schedule.policies
        seed = self._schedule.seed + self._crashes
        self._run.crash(make_policy(names[min(self._crashes, len(names) - 1)], seed), seed)
