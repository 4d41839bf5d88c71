"""The queries that read a mirror, and which of its elements each of them reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from freshet.mirror.learning import from_readers
from freshet.model import ARRIVAL, Operator, Project


@dataclass(frozen=True, slots=True)
class MirrorReader:
    """A query that reads a mirror.

    Args:
        query: Its name.
        weight: What it is worth.
        ways: For each way on which rows come to it, the filters that they pass first. A row is read if one way lets it
            through.
    """

    query: str
    weight: float
    ways: tuple[tuple[Operator, ...], ...]

    def reads(self, names: Sequence[str], column: pa.Field | None) -> list[int] | None:
        """Numbers of the elements that it reads; None: all.

        Only conditions on the element's own column count: what others ask depends on what the element holds.

        >>> from freshet.model import Filter
        >>> reader = MirrorReader("q", 1.0, ((Filter("f", "element IN ('a', 'c')"), Filter("g", "price > 5")),))
        >>> reader.reads(["a", "b", "c"], pa.field("element", pa.string()))
        [0, 2]
        """
        from freshet.kernels.superbox.program import Program, why_not  # checking a file needs no kernels

        if column is None:
            return None
        schema = pa.schema([column])
        chains = [[each for each in way if why_not([each], schema) is None] for way in self.ways]
        if not all(chains):
            return None
        keep = Project("names", ((column.name, f"`{column.name}`"),))
        try:
            numbered = pa.table({column.name: pa.array(names).cast(column.type), ARRIVAL: range(len(names))})
        except pa.ArrowInvalid:  # a name that the column could not hold
            return None
        outputs = Program([[*chain, keep] for chain in chains], schema).run(numbered)
        return sorted({number for each in outputs for number in each.batch[ARRIVAL].to_pylist()})


def read_worth(names: Sequence[str], column: pa.Field | None, readers: Iterable[MirrorReader]) -> list[float]:
    """What each element is worth to the queries that read it: the sum of their weights.

    >>> from freshet.model import Filter
    >>> some = MirrorReader("few", 1.0, ((Filter("f", "element = 'a'"),),))
    >>> read_worth(["a", "b"], pa.field("element", pa.string()), [some, MirrorReader("all", 0.2, ((),))])
    [1.2, 0.2]
    """
    found: list[float] = from_readers(
        len(names), [(each.weight, each.reads(names, column)) for each in readers]
    ).tolist()
    return found
