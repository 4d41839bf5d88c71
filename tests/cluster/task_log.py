"""What the log of Spark's driver says of tasks."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Self

_STARTED: Final = re.compile(
    r"Starting task [\d.]+ in stage (?P<stage>[\d.]+) \(TID (?P<task>\d+)\) \((?P<host>[\d.]+)"
)
_ENDED: Final = re.compile(r"(?P<how>Finished|Lost) task [\d.]+ in stage [\d.]+ \(TID (?P<task>\d+)\)")


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks by the numbers that Spark gives them.

    >>> log = '''INFO TaskSetManager: Starting task 0.0 in stage 4.0 (TID 6) (127.0.0.2,executor 1, partition 0)
    ... INFO TaskSetManager: Starting task 1.0 in stage 4.0 (TID 7) (127.0.0.3,executor 0, partition 1)
    ... INFO TaskSetManager: Finished task 0.0 in stage 4.0 (TID 6) in 9 ms on 127.0.0.2 (executor 1) (1/2)'''
    >>> Tasks.read(log).half_done(besides=set())
    True
    """

    stages: dict[int, str]
    hosts: dict[int, str]
    finished: frozenset[int]
    lost: frozenset[int]

    @classmethod
    def read(cls, log: str) -> Self:
        """From the text of the log."""
        started = [(int(found["task"]), found["stage"], found["host"]) for found in _STARTED.finditer(log)]
        ended = [(int(found["task"]), found["how"]) for found in _ENDED.finditer(log)]
        return cls(
            {task: stage for task, stage, _ in started},
            {task: host for task, _, host in started},
            frozenset(task for task, how in ended if how == "Finished"),
            frozenset(task for task, how in ended if how == "Lost"),
        )

    @property
    def started(self) -> frozenset[int]:
        """All of them."""
        return frozenset(self.stages)

    def half_done(self, besides: AbstractSet[int]) -> bool:
        """Whether, besides these, there is a stage with a task that finished and one that did not, or was given up."""
        done = {self.stages[task] for task in self.finished - besides}
        return any(self.stages[task] in done for task in self.started - besides - self.finished)
