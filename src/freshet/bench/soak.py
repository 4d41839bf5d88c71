"""``freshet bench soak``: runs a steady load for a while, and checks whether anything grows."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
import pyarrow as pa
import typer

from freshet.bench.figures import Spread, slope
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.rig.meter import KINDS, Kept, ProcessMemory, ProcessMeter, measure_kept
from freshet.bench.stage import Stage

if TYPE_CHECKING:
    from freshet.app.app import App
    from freshet.app.reports.types import Report
    from freshet.app.running.run import Run

_HEAP: Final = "1g"
_HISTORY: Final = 20.0
_SAMPLES_PER_KEPT: Final = 6


@dataclass(frozen=True, slots=True)
class SoakSample:
    """One look at a run; ``kept`` is None if it was not measured."""

    minute: float
    memory: ProcessMemory
    kept: Kept | None
    files: int
    bytes: int
    tuples: int
    waiting: int
    steps: int


@bench("Memory and files over minutes of steady load.", takes="the minutes of the warm-up and the measured ones")
def soak(
    stage: Stage,
    minutes: Annotated[float, typer.Option(min=0.2, help="Minutes that are measured.")] = 10.0,
    rate: Annotated[float, typer.Option(min=1.0, help="Rows a second.")] = 2000.0,
    queries: Annotated[int, typer.Option(min=1, help="Continuous queries.")] = 25,
    beat: Annotated[float, typer.Option(min=0.001, help="Seconds between pushes; each makes a step or more.")] = 0.2,
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between samples.")] = 5.0,
    warm_up: Annotated[float, typer.Option(min=0.0, help="Minutes of the same load before: Java compiles.")] = 8.0,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
) -> Result:
    """An application gets rows at a steady beat. It has many queries (most compiled, some left to Spark, one that reads
    the output of another) and a short history. Memory that only its processes hold is sampled. Slopes are least-squares
    lines after the warm-up, with a spread of two standard errors. A slope is flat within noise if its spread holds 0.
    Reserves (compiled Java code, free pages of allocators) grow ever more slowly, so the slope of the second half of
    the time (`late`) is below that of the first (`early`). A leak has the same slope in both, and shows in what is in
    use after a collection: `driver_blocks`, `jvm_live_heap`.
    """
    options = f"-Xms{_HEAP} -XX:+AlwaysPreTouch"
    settings = {"spark.driver.memory": _HEAP, "spark.driver.extraJavaOptions": options}
    app = declare(stage.folder / "state", queries)
    # Spark starts before the application, so that its settings need not be the application's.
    with stage.spark("soak", master, settings):
        with app.start(master=master) as run, _pushing(run, rate, beat):
            samples = _watch(stage, run, app, warm_up + minutes, every)
        report = run.report()
    return Result.of(_figures(samples, warm_up, rate, report), _conditions(app, rate, beat, every, warm_up))


def declare(state: Path, queries: int) -> App:
    """The application: one stream, ``queries`` queries with a short history."""
    from freshet.app import App
    from freshet.log import Retention

    short = Retention(history_age=_HISTORY, history_bytes=64 * 2**20)
    app = App("soak", state=state)
    app.stream("packets", "ts timestamp, host string, port int, size int", retention=short)
    for number in range(queries):
        app.query(f"q{number}", _sql(number), retention=short, sinks=[_ignore] if number % 8 == 0 else [])
    return app


def _sql(number: int) -> str:
    if number == 1:
        return "SELECT host, port FROM q0 WHERE port > 100"
    if number % 12 == 5:
        return f"SELECT upper(host) AS host, size FROM packets WHERE size > {40 + number}"
    return f"SELECT host, port, size * 8 AS bits FROM packets WHERE port >= {number * 20} AND size > {40 + number * 30}"


def _ignore(table: Any, token: Any) -> None:
    """A sink that is a user's code and keeps nothing."""


@contextmanager
def _pushing(run: Run, rate: float, beat: float) -> Iterator[None]:
    """Brings rows at a fixed beat. The number of files and the size of their index follow the rate of steps; the beat
    keeps that rate independent of the speed of the machine."""
    ended = threading.Event()
    rows = _rows(max(1, round(rate * beat)))

    def push() -> None:
        due = time.monotonic()
        while not ended.wait(max(0.0, due - time.monotonic())):
            now = pa.array([time.time_ns() // 1000] * len(rows)).cast(pa.timestamp("us", tz="UTC"))
            run.push("packets", rows.append_column("ts", now))
            due += beat

    thread = threading.Thread(target=push, name="soak")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _rows(count: int) -> pa.Table:
    draw = np.random.default_rng(0)
    ports, sizes = draw.integers(0, 1000, count), draw.integers(40, 1501, count)
    hosts = [f"host-{number}" for number in draw.integers(0, 50, count)]
    return pa.table({"host": hosts, "port": ports.astype(np.int32), "size": sizes.astype(np.int32)})


def _watch(stage: Stage, run: Run, app: App, minutes: float, every: float) -> list[SoakSample]:
    began, look = time.monotonic(), measure_kept()
    samples: list[SoakSample] = []
    total = max(int(minutes * 60 / every), 4)
    with stage.steps("soaking", total) as advance:
        for number in range(1, total + 1):
            time.sleep(max(0.0, began + number * every - time.monotonic()))
            if run.wait(0.0):
                raise RuntimeError("the application ended by itself")
            kept = look() if number % _SAMPLES_PER_KEPT == 0 else None
            samples.append(_sample(run, app, (time.monotonic() - began) / 60, kept))
            advance()
    return samples


def _sample(run: Run, app: App, minute: float, kept: Kept | None) -> SoakSample:
    meters = run.meters()
    files = _sizes(app.state)
    tuples = meters["streams"]["packets"]["tuples"]
    waiting, steps = meters["total"]["waiting"], meters["workers"]["units"]
    return SoakSample(minute, ProcessMeter().memory(), kept, len(files), sum(files), tuples, waiting, steps)


def _sizes(folder: Path) -> list[int]:
    """Bytes of each file below a folder in which files come and go."""
    sizes = []
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                sizes.append(Path(root, name).stat().st_size)
    return sizes


def _figures(samples: Sequence[SoakSample], warm_up: float, rate: float, report: Report) -> dict[str, float | Spread]:
    late = [sample for sample in samples if sample.minute > warm_up]
    minutes = [sample.minute for sample in late]
    first, last = late[0], late[-1]
    seconds = (last.minute - first.minute) * 60
    figures: dict[str, float | Spread] = {
        "memory_slope_mb_per_min": slope(minutes, [sample.memory.total for sample in late]),
    }
    for kind in KINDS:
        figures[f"{kind}_slope_mb_per_min"] = slope(minutes, [getattr(sample.memory, kind) for sample in late])
    return (
        figures
        | _halves(late)
        | _kept(late)
        | {
            "memory_mb": last.memory.total,
            **{f"{kind}_mb": getattr(last.memory, kind) for kind in KINDS},
            "worker_processes_max": max(sample.memory.worker_processes for sample in late),
            "worker_processes_end": last.memory.worker_processes,
            "files_max": max(sample.files for sample in samples),
            "files_end": last.files,
            "files_slope_per_min": slope(minutes, [float(sample.files) for sample in late]),
            "state_mb_max": max(sample.bytes for sample in samples) / 1e6,
            "open_files_max": max(sample.memory.open_files for sample in samples),
            "open_files_slope_per_min": slope(minutes, [float(sample.memory.open_files) for sample in late]),
            "rows_per_second": (last.tuples - first.tuples) / seconds,
            "rows_per_second_wanted": rate,
            "waiting_max": max(sample.waiting for sample in late),
            "waiting_end": last.waiting,
            "response_p95_ms": 1000 * (report["total"]["response"]["p95_s"] or 0.0),
            "quarantined": sum(query["state"] != "active" for query in report["queries"].values()),
            "minutes": last.minute,
        }
    )


def _halves(late: Sequence[SoakSample]) -> dict[str, float | Spread]:
    """The slope of all memory in both halves of the time after the warm-up, and the rate of steps in them."""
    middle = len(late) // 2
    figures: dict[str, float | Spread] = {}
    for name, half in {"early": late[:middle], "late": late[middle:]}.items():
        if len(half) >= 3:
            minutes, first, last = [one.minute for one in half], half[0], half[-1]
            figures[f"memory_slope_{name}_mb_per_min"] = slope(minutes, [one.memory.total for one in half])
            seconds = (last.minute - first.minute) * 60
            figures[f"steps_per_second_{name}"] = (last.steps - first.steps) / seconds
    return figures


def _kept(late: Sequence[SoakSample]) -> dict[str, float | Spread]:
    """What is in use after a collection."""
    looks = [(sample.minute, sample.kept) for sample in late if sample.kept is not None]
    if len(looks) < 3:
        return {}
    minutes, last = [minute for minute, _ in looks], looks[-1][1]
    return {
        "driver_blocks": last.blocks,
        "driver_blocks_slope_per_min": slope(minutes, [float(kept.blocks) for _, kept in looks]),
        "jvm_live_heap_mb": last.heap,
        "jvm_live_heap_slope_mb_per_min": slope(minutes, [kept.heap for _, kept in looks]),
        "jvm_code_mb": last.code,
        "jvm_code_slope_mb_per_min": slope(minutes, [kept.code for _, kept in looks]),
    }


def _conditions(app: App, rate: float, beat: float, every: float, warm_up: float) -> dict[str, Any]:
    return {
        "load": (
            f"{rate:g} rows a second, pushed every {beat * 1000:g} ms, into {len(app.queries)} queries, "
            f"policy {app.settings.policy}"
        ),
        "history_seconds": _HISTORY,
        "memory": (
            f"pages that only the process holds and no file backs, every {every:g} s; the JVM's heap has a fixed size "
            f"of {_HEAP} and is touched at its start, so that the JVM's slope is what grows beside the heap"
        ),
        "kept": (
            f"at every {_SAMPLES_PER_KEPT}th sample, after full collections: the JVM's heap in use, its classes and "
            "compiled code, and the blocks of memory that Python holds in the driver"
        ),
        "slope": (
            f"least squares over the minutes after {warm_up:g} of warm-up, in which Java compiles and the history "
            "fills; early and late: over the halves of that"
        ),
        "spread": "two standard errors of a slope, for correlated residuals",
    }
