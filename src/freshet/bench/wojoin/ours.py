"""The join by ordered keys, as the engine runs it in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.app import App
from freshet.bench.wojoin.state_bytes import our_bytes
from freshet.bench.wojoin.zeek import Ints, Merged
from freshet.kernels.folds.join import CompiledJoin
from freshet.model import Join, KeyOrder
from freshet.quality.disorder import Disorder, predicted_rows
from freshet.sql import SqlTyper
from freshet.testing import LocalRun

NAMES: Final = ("a", "b")
_EVERY: Final = 20
_POINTS: Final = 200


@dataclass(frozen=True, slots=True)
class JoinPlay:
    """What came out.

    Args:
        pairs: Number of pairs found.
        wrong: Pairs that are missing or too many, against the join of all rows above the mark.
        past: Number of rows past the mark.
        held: Mean number of rows that were remembered.
        predicted: Mean number that the order of the streams predicted.
        size: Mean bytes of what was remembered, with its indexes, after every 20th batch.
        course: Number of rows that had come, held and predicted, after some batches.
    """

    pairs: int
    wrong: int
    past: int
    held: float
    predicted: float
    size: float
    course: list[tuple[int, int, int]]


def play(merged: Merged, in_order: float, batch: int) -> JoinPlay:
    """Lets the rows come, a batch at a time."""
    app = App("wojoin")
    for name in NAMES:
        app.stream(name, "ts timestamp, uid string, n int", ordered_by="ts", disorder="measured", in_order=in_order)
    app.query("q", "SELECT a.n, b.n AS m FROM a, b WHERE a.ts = b.ts AND a.uid = b.uid")
    tables = [_table(keys.keys, keys.uids) for keys in merged.sides]
    held, predicted, sizes, done = [], [], list[int](), [0, 0]
    with LocalRun(app) as run:
        join = _compiled(app, run)
        for number, first in enumerate(range(0, merged.rows, batch)):
            part = merged.side[first : first + batch]
            for port, name in enumerate(NAMES):
                count = int(np.count_nonzero(part == port))
                if count:
                    run.push(name, tables[port].slice(done[port], count))
                    done[port] += count
            run.drain()
            [fold] = run.engine.board.folds()
            held.append(sum(run.engine.time.rows_by_port(fold)))
            if number % _EVERY == 0:
                sizes.append(our_bytes(run, join))
            known = [Disorder.unpacked(packed) for name in NAMES if (packed := run.log.disorder(name)) is not None]
            predicted.append(sum(predicted_rows(known[at], [known[1 - at]]) for at in (0, 1)) if len(known) == 2 else 0)
        found = {(row["n"], row["m"]) for row in run.rows("q")}
        size = len(run.rows("q"))
    expected, past = _expected(merged, in_order)
    wrong = len(found ^ expected) + size - len(found)
    means = [float(np.mean(each)) for each in (held, predicted, sizes)]
    some = range(0, len(held), max(1, len(held) // _POINTS))
    course = [(min(merged.rows, (at + 1) * batch), int(held[at]), int(predicted[at])) for at in some]
    return JoinPlay(len(found), wrong, past, means[0], means[1], means[2], course)


def _compiled(app: App, run: LocalRun) -> CompiledJoin:
    graph = run.queries["q"].graph
    columns = graph.schemas({name: spec.stream.schema for name, spec in app.streams.items()}, SqlTyper())
    [join] = (each for each in graph.operators.values() if isinstance(each, Join))
    return CompiledJoin(join, *(columns[source] for source in graph.inputs[join.name]))


def _table(keys: Ints, uids: tuple[str, ...]) -> pa.Table:
    times = pa.array(keys).cast(pa.timestamp("us", "UTC"))
    return pa.table({"ts": times, "uid": list(uids), "n": pa.array(np.arange(len(keys)), pa.int32())})


def _expected(merged: Merged, in_order: float) -> tuple[set[tuple[int, int]], int]:
    """The pairs of all rows above the mark, and the number of the other rows."""
    order = KeyOrder("ts", in_order=in_order)
    past = [set(Disorder().judge(side.keys, order).past.tolist()) for side in merged.sides]
    pairs = {(one, other) for one, other in merged.pairs.tolist() if one not in past[0] and other not in past[1]}
    return pairs, sum(map(len, past))
