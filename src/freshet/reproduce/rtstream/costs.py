"""What operators cost, measured on the kernels of this machine (RT §4.1, Fig. 3-4).

Times are those of the processor, and the least of several runs, because what else the machine does only adds to them;
where small differences count, runs take turns, and a low percentile counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time_ns
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels import compile_fold
from freshet.kernels.running import fold_ports
from freshet.kernels.superbox.pipeline import Memory
from freshet.kernels.superbox.superbox import Superbox
from freshet.model import ARRIVAL, Filter, Join, Lifetime

_QUICK: Final = 0.1
"""Share of the runs that were quicker than what counts: the median tells of other work, the least one of luck."""
_VALID: Final = Lifetime(None, 10**12)
"""All tuples of a window are there at the same time."""


@dataclass(frozen=True, slots=True)
class KernelRun:
    """One operator over a window.

    Args:
        kind: ``selection`` or ``join``.
        rows: Tuples of each input.
        share: Selectivity of a selection; pairs per left tuple of a join.
        repeats: Runs of which the least counts.
        seed: Of the tuples.
    """

    kind: str
    rows: int
    share: float = 0.2
    repeats: int = 9
    seed: int = 0


def kernel_seconds(run: KernelRun) -> float:
    """Seconds that the operator takes."""
    work = _work(run)
    return min(_timed(work) for _ in range(run.repeats))


def compared_seconds(runs: tuple[KernelRun, ...]) -> list[float]:
    """Seconds of operators that are compared. They take turns: a slow moment of the machine hits all."""
    works = [_work(run) for run in runs]
    rounds = [[_timed(work) for work in works] for _ in range(max(run.repeats for run in runs))]
    return np.quantile(rounds, _QUICK, axis=0).tolist()  # type: ignore[no-any-return]


def _work(run: KernelRun) -> Callable[[], object]:
    random = np.random.default_rng([run.seed, run.rows])
    return _selection(run, random) if run.kind == "selection" else _join(run, random)


def _timed(work: Callable[[], object]) -> float:
    began = process_time_ns()
    work()
    return (process_time_ns() - began) / 1e9


def _selection(run: KernelRun, random: np.random.Generator) -> Callable[[], object]:
    kinds = pa.array(["sensor", "camera", "gauge"]).take(pa.array(random.integers(0, 3, run.rows)))
    columns = {"id": random.integers(0, 10_000, run.rows), "value": random.random(run.rows), "type": kinds}
    table = pa.table({**columns, ARRIVAL: np.arange(run.rows)})
    box = Superbox(((Filter("selection", f"value < {run.share}"),),), table.schema)
    return lambda: box.begin(table)[0].finish({})


def _join(run: KernelRun, random: np.random.Generator) -> Callable[[], object]:
    keys = max(1, round(run.rows / run.share))
    tables = [
        pa.table({
            "id": random.integers(0, keys, run.rows), "value": random.random(run.rows), ARRIVAL: np.arange(run.rows),
        })
        for _ in range(2)
    ]  # fmt: skip
    columns = (("left", 0, "value"), ("right", 1, "value"))
    operator = Join("join", "inner", (_VALID, _VALID), (("id",), ("id",)), columns, (0, 0))
    schema = tables[0].schema.remove(2)
    fold = compile_fold(operator, schema, schema)
    nothing = [each.empty_table() for each in fold.states]

    def work() -> object:
        return fold_ports(tables, Memory.of(fold, nothing, (None, None), (None, None)))

    return work
