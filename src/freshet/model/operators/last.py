"""The last tuples of each partition, at each release of a periodic query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from freshet.model.operators.base import Typer
from freshet.model.operators.fold import Fold


@dataclass(frozen=True, slots=True)
class Last(Fold):
    """Gives out, in each run, the last ``rows`` tuples of each partition: a window of a periodic query that no range of
    the log holds (RT Table 1, partition windows).

    >>> Last("q.window", 5, ("k",)).text()
    'the last 5 tuples of each k'
    """

    tag: ClassVar[str] = "last"

    rows: int
    partition: tuple[str, ...] = ()

    @property
    def goes_by_time(self) -> bool:
        return False

    @property
    def split_keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.partition,) if self.partition else ()

    def output(self, inputs: Sequence[pa.Schema], typer: Typer) -> pa.Schema:
        return inputs[0]

    def text(self) -> str:
        return f"the last {self.rows} tuples" + (f" of each {', '.join(self.partition)}" if self.partition else "")

    def state_text(self) -> str:
        return self.text()
