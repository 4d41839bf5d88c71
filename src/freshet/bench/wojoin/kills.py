"""Kills an application with joins by ordered keys, again and again, and compares all answers with the log."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa

from freshet.bench.crash.until_drained import kill_until_drained
from freshet.bench.stage import Stage
from freshet.bench.wojoin import victim
from freshet.log import LogReader
from freshet.model import ARRIVAL

RATE: Final = 2_000.0
"""Tuples per second of each stream."""
LONGEST_S: Final = 3.0
"""Maximum seconds that a process runs before a kill."""
_BOUNDED: Final = "resting.join_1"


@dataclass(frozen=True, slots=True)
class KillsChecked:
    """What was found.

    Args:
        rows: Rows that there should be.
        wrong: Rows that are missing or too many, and steps back in answers that should be in order.
        let_go: Tuples that the join with a bound let go.
        past: Tuples past the marks.
    """

    rows: int
    wrong: int
    let_go: int
    past: int


def killed_joins(stage: Stage, kills: int, seed: int = 23, rate: float = RATE) -> KillsChecked:
    """Kills drivers and residents so often, lets the application drain, and checks every answer.

    Args:
        stage: Where.
        kills: How often.
        seed: Of the moments and victims.
        rate: Tuples per second of each stream.
    """
    state = kill_until_drained(stage, victim.__file__, kills=kills, seed=seed, rate=rate, longest=LONGEST_S)
    with LogReader(state) as log:
        return check(log)


def check(log: LogReader) -> KillsChecked:
    """Compares the answers with the joins of all tuples that the log says count."""
    past = {name: set(log.past(name, 0, log.end(name))) for name in "ab"}
    gone = {name: set(log.let_go(name, 0, log.end(name), _BOUNDED)) for name in "ab"}
    rows = {name: _rows(log, name) for name in "ab"}
    kept = {name: [row for at, row in enumerate(rows[name]) if at not in past[name]] for name in "ab"}
    fewer = {name: [row for at, row in enumerate(rows[name]) if at not in past[name] | gone[name]] for name in "ab"}
    pairs, some = _pairs(kept["a"], kept["b"]), _pairs(fewer["a"], fewer["b"])
    mark, met = log.key_mark("b"), {row[1] for row in pairs}
    alone = [(row["epoch"], row["n"], None) for row in kept["a"] if row["n"] not in met]
    expected = {
        "resting": Counter((*row[:3], row[3]) for row in some),
        "sorted": Counter(row[:3] for row in pairs),
        "alone": Counter([row[:3] for row in pairs] + [row for row in alone if mark is not None and row[0] <= mark]),
    }
    reached = min((each for each in (mark, log.key_mark("a")) if each is not None), default=0)
    expected["sorted"] = Counter({row: times for row, times in expected["sorted"].items() if row[0] <= reached})
    wrong = 0
    for name, whole in expected.items():
        found = [tuple(row.values()) for row in _rows(log, name)]
        wrong += sum(((Counter(found) - whole) + (whole - Counter(found))).values())
        if name == "sorted":
            wrong += sum(one[0] > other[0] for one, other in pairwise(found))
    sizes = [sum(map(len, each.values())) for each in (gone, past)]
    return KillsChecked(sum(each.total() for each in expected.values()), wrong, *sizes)


def _rows(log: LogReader, name: str) -> list[dict[str, Any]]:
    table: pa.Table = log.read(name, 0, log.end(name))
    hidden = [column for column in table.column_names if column == ARRIVAL or column.startswith("__")]
    found: list[dict[str, Any]] = table.drop_columns(hidden).to_pylist()
    return found


def _pairs(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    partners = defaultdict[tuple[Any, Any], list[Any]](list)
    for row in right:
        partners[row["epoch"], row["u"]].append(row["n"])
    return [(one["epoch"], one["n"], m, one["t"]) for one in left for m in partners.get((one["epoch"], one["u"]), ())]
