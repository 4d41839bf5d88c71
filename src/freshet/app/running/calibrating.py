"""Calibration: runs the queries of an application with each strategy, over tuples that its log has kept.

The runs are real: Spark, a state folder of their own, and tuples that come in the rhythm in which they once came.
Sources are not asked, and sinks get nothing.
"""

from __future__ import annotations

import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from freshet.app.app import App
from freshet.app.declared.spec import QuerySpec, StreamSpec
from freshet.app.remembered.looks import LookRecord, read_looks
from freshet.app.remembered.ranks import MeasuredRanks
from freshet.log import LogReader
from freshet.model import ARRIVAL, MEASURES, Expectations, Promises, Stream, UserError
from freshet.model.units import MOST_BYTES
from freshet.quality.optimizer import SHIPPED, DecisionTable

if TYPE_CHECKING:
    from freshet.app.running.run import Run

PORTION: Final = 0.1
"""Seconds of tuples that are pushed together."""
_LOOKS: Final = 8
"""Number of looks at each query in a run, at least, if it is long enough."""
_LEAST: Final = 0.25
"""Least time between two of them, in seconds."""
_PATIENCE: Final = 60.0
"""Seconds that a query has to be looked at once after everything was replayed."""
_UNLIMITED: Final = {"latency": "36500 days", "memory": MOST_BYTES, "throughput": 1e-9}
"""What is always so: all measures are watched, and nothing is violated."""


@dataclass(frozen=True, slots=True)
class Portion:
    """Tuples of a stream that are pushed together, this many seconds after the beginning."""

    after: float
    stream: str
    first: int
    end: int


def calibrate(app: App, seconds: float, tell: Callable[[str, float], None]) -> MeasuredRanks:
    """Measures each strategy for some seconds, and keeps the tables in the state folder.

    Args:
        app: The application; the log of its state folder has what is replayed.
        seconds: How long each strategy is measured, at most.
        tell: Gets what is done, and the share that is done.

    Raises:
        UserError: No query expects anything, or no stream has tuples.
    """
    names = [name for name, spec in app.queries.items() if spec.promises.expected]
    if not names:
        raise UserError("no query has expectations: the optimizer chooses strategies only for queries with `expect`")
    ranks = app.settings.ranks
    strategies = ranks.strategies if isinstance(ranks, DecisionTable) else SHIPPED.strategies
    figures: dict[str, dict[str, dict[str, float | None]]] = {name: {} for name in names}
    with LogReader(app.state) as log:
        portions = list(recorded(log, [name for name in app.streams if name in log.streams()], seconds))
        if not portions:
            raise UserError(f"{app.state} has no tuples to replay: run the application first, and keep some history")
        for number, strategy in enumerate(strategies):

            def share(done: float, number: int = number, strategy: str = strategy) -> None:
                tell(strategy, (number + done) / len(strategies))

            looks = _measured(app, strategy, names, log, portions, share)
            for name in names:
                figures[name][strategy] = means([each for each in looks if each.query == name])
    found = MeasuredRanks(datetime.now(UTC).isoformat(timespec="seconds"), seconds, figures)
    found.write(app.state)
    return found


def recorded(log: LogReader, streams: Sequence[str], seconds: float) -> Iterator[Portion]:
    """The last seconds of what streams have kept, in portions, as they came."""
    ends = {stream: log.end(stream) for stream in streams if log.oldest(stream) < log.end(stream)}
    if not ends:
        return
    last = max(log.arrival(stream, end - 1) for stream, end in ends.items())
    first = max(last - round(seconds * 1e6), min(log.arrival(stream, log.oldest(stream)) for stream in ends))
    found: list[Portion] = []
    for stream, end in ends.items():
        offsets = range(log.oldest(stream), end)

        def place(moment: int, offsets: range = offsets, stream: str = stream) -> int:
            return offsets.start + bisect_left(offsets, moment, key=lambda offset: log.arrival(stream, offset))

        moment, begin = first, place(first)
        while begin < end:
            moment += round(PORTION * 1e6)
            behind = place(moment)
            if behind > begin:
                found.append(Portion((moment - first) / 1e6, stream, begin, behind))
                begin = behind
    yield from sorted(found, key=lambda portion: portion.after)


def _measured(
    app: App,
    strategy: str,
    names: Sequence[str],
    log: LogReader,
    portions: Sequence[Portion],
    tell: Callable[[float], None],
) -> list[LookRecord]:
    """Replays all portions to an application whose queries have a strategy; returns the looks at them."""
    with tempfile.TemporaryDirectory(prefix="freshet-calibrate-") as folder:
        made = _pinned(app, strategy, names, Path(folder), portions[-1].after)
        tell(0.0)
        with made.start() as run:
            _replay(run, log, portions, tell, {name: spec.stream for name, spec in app.streams.items()})
            _await_looks(run, names)
        return list(read_looks(Path(folder)))


def _replay(
    run: Run,
    log: LogReader,
    portions: Sequence[Portion],
    tell: Callable[[float], None],
    streams: Mapping[str, Stream],
) -> None:
    began = time.monotonic()
    for portion in portions:
        time.sleep(max(0.0, began + portion.after - time.monotonic()))
        rows: pa.Table = log.read(portion.stream, portion.first, portion.end)
        run.push(portion.stream, rows.drop_columns([ARRIVAL]) if ARRIVAL in rows.column_names else rows)
        moment = event_time(log, streams[portion.stream], portion.end)
        if moment is not None:
            run.heartbeat(portion.stream, moment)
        tell(portion.after / portions[-1].after)


def event_time(log: LogReader, stream: Stream, offset: int) -> float | None:
    """How far event time had come at an offset, by rows and heartbeats before it, in seconds; None: time is the
    arrival, which passes by itself, or nothing is ever late."""
    if stream.event_time is None or stream.lateness is None:
        return None
    mark = log.watermark(stream.name, offset)
    return None if mark is None else mark / 1e6 + stream.lateness


def _await_looks(run: Run, names: Sequence[str]) -> None:
    """Waits until each query was looked at: a short replay may be over before."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        told = run.meters()["queries"]
        if all((promise := told[name]["promise"]) is not None and promise["looks"] for name in names):
            return
        time.sleep(PORTION)


def _pinned(app: App, strategy: str, names: Sequence[str], state: Path, seconds: float) -> App:
    """The application with a strategy for these queries, without its sources and sinks, and in another folder."""
    made = copy(app)
    made.state, made.report = state, None
    looks = replace(app.settings.looks, every=min(app.settings.looks.every, max(_LEAST, seconds / _LOOKS)), ahead=0.0)
    made.settings = replace(app.settings, optimizer="advise", ranks="shipped", looks=looks)
    made.streams = {name: StreamSpec(spec.stream, retention=spec.retention) for name, spec in app.streams.items()}
    made.queries = {name: _watched(spec, strategy, name in names) for name, spec in app.queries.items()}
    return made


def _watched(spec: QuerySpec, strategy: str, chosen: bool) -> QuerySpec:
    expect = Expectations.parse(_UNLIMITED) if chosen else Expectations()
    promises: Promises = replace(spec.promises, expect=expect)
    return replace(spec, promises=promises, sinks=(), strategy=strategy if chosen else None)


def means(looks: Sequence[LookRecord]) -> dict[str, float | None]:
    """The mean of each measure over looks; None: it was never observed.

    >>> means([])
    {'latency': None, 'memory': None, 'throughput': None}
    """
    found: dict[str, list[float]] = {name: [] for name in MEASURES}
    for measure in (measure for each in looks for measure in each.look.measures):
        if measure.observed is not None:
            found[measure.measure].append(measure.observed)
    return {name: sum(values) / len(values) if values else None for name, values in found.items()}
