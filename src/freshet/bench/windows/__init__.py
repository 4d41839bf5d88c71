"""``freshet bench windows``: sliding aggregates and joins, against Structured Streaming."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
import typer

from freshet.bench.figures import Spread, extremes, quartiles, ratio
from freshet.bench.interleave import interleave
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.stage import Stage
from freshet.bench.windows.load import EPOCH, GROUPS, JOIN, LATENESS, NEAR, SLIDING, WINDOW, Case
from freshet.model import UserError

if TYPE_CHECKING:
    from freshet.bench.windows.sides import WindowSide

CASES: Final = (SLIDING, JOIN)
TIMED: Final = 20
"""Seconds of event time that are timed in a replay."""
_THIN: Final = 5_000.0
"""Rows a second that fill a window before that."""
_FIRST: Final = {"freshet": 400_000.0, "streaming": 40_000.0}
_MOST: Final = 1_000_000.0
"""Maximum rows a second of a replay: what a disk and ten minutes allow."""
_PROBES: Final = 3
HEAP: Final = "8g"


@dataclass(frozen=True, slots=True)
class Replay:
    """How fast a replay went."""

    rate: float
    """Rows per second of event time."""
    seconds: float
    """Seconds that the timed part of event time took."""
    rows_out: int

    @property
    def worked_off(self) -> float:
        """Rows a second."""
        return self.rate * TIMED / self.seconds


@bench("Sliding aggregates and joins, against Structured Streaming.", takes="about fifteen minutes")
def windows(
    stage: Stage,
    rounds: Annotated[int, typer.Option(min=1, help="Measured rounds; each has both sides.")] = 3,
    live: Annotated[float, typer.Option(min=5.0, help="Seconds of a live feed.")] = 20.0,
    case: Annotated[list[str] | None, typer.Option(help="Only this case, window or join.", show_default=False)] = None,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
) -> Result:
    """Rows are replayed as fast as they are worked off. For each side the benchmark looks for a rate at which a second
    of event time takes about a second: the highest that it sustains. Then both sides are replayed at their rates, in
    turn. Both are also fed live, at half the lower rate, to see how long answers take.
    """
    from freshet.bench.windows.sides import FreshetWindows, StreamingWindows

    cases = [each for each in CASES if case is None or each.name in case]
    if len(cases) < len(case or ()):
        raise UserError(f"--case must be one of {', '.join(each.name for each in CASES)}")
    figures: dict[str, float | Spread] = {}
    notes: dict[str, Any] = {}
    # Structured Streaming keeps the state of a join in the heap, and Java's default heap would not hold it.
    with stage.spark("windows", master, {"spark.driver.memory": HEAP}) as session:
        sides: dict[str, WindowSide] = {
            "freshet": FreshetWindows(session, stage.folder),
            "streaming": StreamingWindows(session, stage.folder / "streaming"),
        }
        check(cases, sides)
        for each in cases:
            figures |= _measure(stage, each, sides, rounds, live, notes)
    return Result.of(figures, _conditions(notes, live))


def _measure(
    stage: Stage, case: Case, sides: Mapping[str, WindowSide], rounds: int, live: float, notes: dict[str, Any]
) -> dict[str, float | Spread]:
    rates = _find_rates(stage, case, sides)
    with stage.steps(f"{case.name}: replays", rounds) as advance:
        found = interleave(_replays(case, sides, rates), rounds, advance)
    pace = 0.5 * min(each.worked_off for replays in found.values() for each in replays)
    with stage.steps(f"{case.name}: live feeds", 1 + rounds) as advance:
        feeds = _feeds(case, sides, pace, live)
        interleave(feeds, 1, advance)
        waits = interleave(feeds, rounds, advance)
    notes[case.name] = {"query": case.sql, "live_rows_per_second": round(pace)}
    return _rate_figures(case, found) | _latency_figures(case, waits)


def check(cases: Iterable[Case], sides: Mapping[str, WindowSide]) -> None:
    """Checks that both sides answer alike, over the same rows and a later one that closes all of their windows."""
    for case in cases:
        rows = [case.rows(EPOCH + second, EPOCH + second + 1, 2_000.0) for second in range(5)]
        later = [case.rows(EPOCH + 200, EPOCH + 201, 100.0)]
        counts = {name: side.replay(case, rows, later)[1] for name, side in sides.items()}
        if len(set(counts.values())) != 1:
            raise RuntimeError(f"the two sides gave different numbers of rows ({counts}): the comparison means nothing")


def _replay(case: Case, side: WindowSide, rate: float) -> Replay:
    filled = WINDOW if case is SLIDING else NEAR
    before = [case.rows(EPOCH + at, EPOCH + at + 1, min(rate, _THIN)) for at in range(filled)]
    start = EPOCH + filled
    timed = [case.rows(start + at, start + at + 1, rate) for at in range(TIMED)]
    seconds, rows_out = side.replay(case, before, timed)
    return Replay(rate, seconds, rows_out)


def _replays(
    case: Case, sides: Mapping[str, WindowSide], rates: Mapping[str, float]
) -> dict[str, Callable[[], Replay]]:
    return {name: lambda name=name, side=side: _replay(case, side, rates[name]) for name, side in sides.items()}  # type: ignore[misc]


def _find_rates(stage: Stage, case: Case, sides: Mapping[str, WindowSide]) -> dict[str, float]:
    """Looks for the rates at which a second of event time takes about a second; this also warms Java up."""
    rates = {}
    with stage.steps(f"{case.name}: looking for rates", _PROBES * len(sides)) as advance:
        for name, side in sides.items():
            rate = _FIRST[name]
            for _ in range(_PROBES):
                rate = min(_replay(case, side, rate).worked_off, _MOST)
                advance()
            rates[name] = rate
    return rates


def _feeds(
    case: Case, sides: Mapping[str, WindowSide], rate: float, seconds: float
) -> dict[str, Callable[[], list[float]]]:
    return {name: lambda side=side: side.live(case, rate, seconds) for name, side in sides.items()}  # type: ignore[misc]


def _rate_figures(case: Case, found: Mapping[str, list[Replay]]) -> dict[str, float | Spread]:
    rates = {name: [each.worked_off for each in replays] for name, replays in found.items()}
    figures: dict[str, float | Spread] = {
        f"{case.name}_rate_vs_ss": ratio(*([[rate] for rate in rates[name]] for name in ("freshet", "streaming"))),
    }
    for name, each in rates.items():
        figures[f"{case.name}_rows_per_second_{name}"] = extremes(each)
        figures[f"{case.name}_event_seconds_per_second_{name}"] = extremes([TIMED / one.seconds for one in found[name]])
    return figures


def _latency_figures(case: Case, waits: Mapping[str, list[list[float]]]) -> dict[str, float | Spread]:
    if not all(each for side in waits.values() for each in side):
        raise RuntimeError(f"{case.name}: a live feed ended before an answer came: take a longer --live")
    figures: dict[str, float | Spread] = {
        f"{case.name}_latency_vs_ss": ratio(waits["freshet"], waits["streaming"]),
    }
    for name, each in waits.items():
        figures[f"{case.name}_latency_ms_{name}"] = quartiles(np.concatenate(each)).times(1e3)
    return figures


def _conditions(notes: dict[str, Any], live: float) -> dict[str, Any]:
    return {
        **notes,
        "rows": (f"evenly spaced in event time; window: {GROUPS} groups; join: half the second stream has partners"),
        "lateness_seconds": LATENESS,
        "rate": (
            f"{TIMED} s of event time after the window was filled, as fast as they are worked off, from a log "
            "(Freshet) or Parquet files (Structured Streaming) to synced segments or Parquet; at a rate at which event "
            f"time takes about as long as real time (event_seconds_per_second), at most {_MOST:,.0f}"
        ),
        "latency": (
            f"live feeds of {live:g} s at half the lower rate, from when event time made an answer known (the end of "
            "the window and the lateness; the later row of a pair) until it could be read"
        ),
        "streaming": "append mode, watermarks, state in memory with checkpoints, foreachBatch to Parquet, no trigger",
        "java_heap": HEAP,
        "spread": "least and greatest of rounds; quartiles for latencies; of a ratio: least and greatest of a round",
    }
