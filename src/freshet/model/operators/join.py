"""Joins of streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import pyarrow as pa

from freshet.model.operators.base import Acted, Split, Time, Typer, earliest, minus
from freshet.model.operators.fold import Fold, Lifetime
from freshet.model.plain_values import later

FROM: Final = "__from"
"""Column (bigint, microseconds) that a join outputs: since when a row is valid."""
UNTIL: Final = "__until"
"""Column (bigint, microseconds) that a join outputs: until when a row is valid."""


@dataclass(frozen=True, slots=True)
class Join(Fold):
    """Rows of tuples, one of each of its inputs, of which there are at least two (an MJoin: S. D. Viglas, J. F.
    Naughton and J. Burger, "Maximizing the output rate of multi-way join queries over streaming information sources",
    2003).

    Tuples join if their keys are equal (NULL equals nothing; no keys: all do) and there is a time at which all of them
    are valid. A row comes when the last of its tuples is processed, whichever that is. It is valid as long as all of
    them are. A left join has two inputs. A left tuple without a partner comes with NULLs once no partner can come
    any more.

    Args:
        name: Whose state it is.
        kind: Of the join.
        validity: Of the tuples of each input.
        keys: Columns of each input that must be equal. Those in the same place are equal to each other; None: the
            input has no column in that place.
        columns: What it outputs, as (name, port, column of that input), before :data:`FROM` and :data:`UNTIL`.
        behind: By how many microseconds the times of what it outputs may lie behind the watermark of each input: its
            own watermark is the least of ``watermark - behind``. The times are those that whoever reads it goes by:
            :data:`FROM`, or the column that carries the event time.
        sorted: Whether rows come in the order of their times, once event time has passed these at all inputs, and not
            as soon as their last tuple is there (memory-sort first, WU §3.5.1). Tuples must be valid for a moment.

    >>> minute = Lifetime("ts", 60_000_000)
    >>> Join("j", "inner", (minute,) * 3, (("k", None), ("k", "v"), ("k", "w")), (("k", 0, "k"),), (0, 0, 0)).text()
    'JOIN ON input_1.k = input_2.k = input_3.k AND input_2.v = input_3.w, input_1 valid for 1 min of ts, input_2 for ...
    """

    tag: ClassVar[str] = "join"

    kind: Literal["inner", "left"]
    validity: tuple[Lifetime, ...]
    keys: tuple[tuple[str | None, ...], ...]
    columns: tuple[tuple[str, int, str], ...]
    behind: tuple[int, ...] = (0, 0)
    sorted: bool = later(False)

    @property
    def split(self) -> Split:
        return "keys" if self.why_one_task is None else "never"

    @property
    def why_one_task(self) -> str | None:
        """Why one task does all of its work, however much it is; None: tasks may share it by key.

        >>> minute = Lifetime("ts", 60_000_000)
        >>> Join("j", "inner", (minute, minute), ((), ()), ()).why_one_task
        'no equal columns tell which core a tuple belongs to'
        >>> path = (("k", None), ("k", "v"), (None, "v"))
        >>> Join("j", "inner", (minute,) * 3, path, (), (0, 0, 0)).why_one_task
        'no column is equal in all its inputs, so that none tells which core a tuple belongs to'
        """
        if self.kind == "left":
            return "a LEFT JOIN must know of all tuples at once which of them found no partner"
        if self.sorted:
            return "its rows come in the order of the key, and tasks that have some keys each would break that order"
        if not any(self.keys):
            return "no equal columns tell which core a tuple belongs to"
        if not self.split_keys:
            return "no column is equal in all its inputs, so that none tells which core a tuple belongs to"
        return None

    @property
    def split_keys(self) -> tuple[tuple[str, ...], ...]:
        if self.sorted:
            return ()
        common = [names for names in zip(*self.keys, strict=True) if None not in names]
        return tuple(tuple(name or "" for name in names) for names in zip(*common, strict=True))

    @property
    def states(self) -> int:
        return len(self.validity)

    @property
    def ports(self) -> range:
        """The numbers of its inputs."""
        return range(len(self.validity))

    def stays(self, port: int) -> bool:
        """Whether tuples of an input are remembered until the time of that input itself has passed them, too: rows
        come in the order of times, or right tuples still decide which left ones are without a partner.

        >>> minute = Lifetime("ts", 60_000_000)
        >>> [Join("j", "left", (minute, minute), ((), ()), ()).stays(port) for port in (0, 1)]
        [False, True]
        """
        return self.sorted or (self.kind == "left" and port == 1)

    def output(self, inputs: Sequence[pa.Schema], typer: Typer) -> pa.Schema:
        columns = [(name, inputs[port].field(column).type) for name, port, column in self.columns]
        return pa.schema([*columns, (FROM, pa.int64()), (UNTIL, pa.int64())])

    def watermark(self, before: Sequence[Time], acted: Acted) -> Time:
        times = [minus(time, behind) for time, behind in zip(before, self.behind, strict=True)]
        if self.sorted:
            return earliest([minus(acted(port), behind) for port, behind in enumerate(self.behind)])
        # A left tuple without a partner comes when the right side's time has acted.
        return earliest(times if self.kind == "inner" else [*times, minus(acted(1), self.behind[1])])

    def is_due(self, seen: Sequence[Time], possible: Sequence[Time]) -> bool:
        if self.sorted:
            return earliest(possible) != earliest(seen)
        return self.kind == "left" and possible[1] != seen[1]

    def text(self) -> str:
        names = port_names(len(self.ports))
        equal = (
            " = ".join(f"{name}.{key}" for name, key in zip(names, keys, strict=True) if key is not None)
            for keys in zip(*self.keys, strict=True)
        )
        times = (f"{'from' if each.size is None else 'for'} {each.text()}" for each in self.validity)
        first, *others = map(" ".join, zip(names, times, strict=True))
        valid = ", ".join([first.replace(" ", " valid ", 1), *others])
        on = " AND ".join(equal)
        kind = "LEFT JOIN" if self.kind == "left" else "JOIN"
        order = ", in the order of the key" if self.sorted else ""
        return f"{kind} {f'ON {on}' if on else 'without equal columns'}, {valid}{order}"

    def state_text(self) -> str:
        names = port_names(len(self.ports))
        kept = (f"{name} tuples {each.for_how_long()}" for name, each in zip(names, self.validity, strict=True))
        outer = ", and which of the left ones found no partner" if self.kind == "left" else ""
        return f"{', '.join(kept)}{outer}"


def port_names(ports: int) -> tuple[str, ...]:
    """What people call the inputs of a join.

    >>> port_names(2), port_names(3)
    (('left', 'right'), ('input_1', 'input_2', 'input_3'))
    """
    return ("left", "right") if ports == 2 else tuple(f"input_{port}" for port in range(1, ports + 1))
