"""``freshet bench many``: many queries over one stream, against Structured Streaming and a floor without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.stage import Stage
from freshet.model import UserError

if TYPE_CHECKING:
    from freshet.bench.many.figures import TrialFigures

SIDES: Final = ("freshet", "queries", "foreach", "floor")
SINKS: Final[Mapping[str, tuple[str, ...]]] = {
    "parquet": ("parquet",), "noop": ("noop",), "both": ("parquet", "noop"),
}  # fmt: skip
_NAMED: Final = ("latency_", "rows_per_s_", "cpu_vs_floor_")


@bench("Many queries over one stream, against Structured Streaming and a floor.", takes="about half an hour")
def many(
    stage: Stage,
    queries: Annotated[str, typer.Option(help="Numbers of queries, separated by commas.")] = "1,25,100,250",
    rate: Annotated[float, typer.Option(min=20.0, help="Rows a second at which all sides are compared.")] = 2000.0,
    seconds: Annotated[float, typer.Option(min=1.0, help="Seconds of input that are measured in a trial.")] = 8.0,
    sides: Annotated[str, typer.Option(help="The sides to compare.")] = ",".join(SIDES),
    sinks: Annotated[str, typer.Option(help="Where outputs go: parquet, noop or both.")] = "both",
    trials: Annotated[
        int, typer.Option(min=1, help="Trials with the first kind of sink, after a warm-up; the other has one.")
    ] = 2,
    loaded: Annotated[int, typer.Option(min=0, help="The number of queries that is also fed at --rates.")] = 250,
    rates: Annotated[str, typer.Option(help="Rates for --loaded, in rows a second, ascending.")] = "20000,40000,80000",
    train: Annotated[int, typer.Option(min=0, help="Rows of a train against the floor; 0: no such trains.")] = 100_000,
    limit: Annotated[float, typer.Option(min=1.0, help="Seconds that a side has to get going.")] = 40.0,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[*]",
) -> Result:
    """The same Parquet files are dropped into a folder of each side, one side after the other: Freshet; a streaming
    query for each query; one streaming query with a foreachBatch that runs them in turn; NumPy without Spark. The
    benchmark measures the time from the arrival of a file to readable output. Then many queries are fed at higher
    rates, and Freshet's CPU time for long trains is compared with the floor's.
    """
    from freshet.bench.many.figures import comparison_figures, floor_figures, load_figures
    from freshet.bench.many.grid import TrialGrid

    asked, high = [int(each) for each in numbers(queries, "--queries")], numbers(rates, "--rates")
    chosen = tuple(each.strip() for each in sides.split(","))
    if strangers := set(chosen) - set(SIDES):
        raise UserError(f"--sides: there is no {', '.join(sorted(strangers))}; choose from {', '.join(SIDES)}")
    if sinks not in SINKS:
        raise UserError(f"--sinks must be one of {', '.join(SINKS)}")
    kinds = SINKS[sinks]
    grid = TrialGrid(stage, chosen, kinds, trials, rate, tuple(sorted(high)), seconds, train, limit, master)
    for count in sorted(asked):
        grid.measure(count, count == loaded)
    figures = comparison_figures(grid.found, rate)
    if loaded in asked:
        figures |= load_figures(grid.found, loaded, kinds, min(high), rate) | floor_figures(grid.found, loaded)
    if not figures:
        raise RuntimeError(f"nothing was measured: {_silent(grid.found)}")
    order = sorted(figures, key=lambda name: not name.startswith(_NAMED))
    return Result.of({name: figures[name] for name in order}, _conditions(grid.found, rate, limit, train))


def numbers(text: str, option: str) -> Sequence[float]:
    """Numbers above zero from a list.

    >>> numbers("1, 25", "--queries")
    [1.0, 25.0]
    """
    try:
        found = [float(each) for each in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise UserError(f"{option} must be numbers with commas between them, each at least 1; {text!r} is not")
    return found


def _silent(found: TrialFigures) -> dict[str, str]:
    return {f"{place.name}_{place.rate:g}": reason for place, reason in sorted(found.silent.items())}


def _conditions(found: TrialFigures, rate: float, limit: float, train: int) -> dict[str, Any]:
    from freshet.bench.many.files import INTERVAL
    from freshet.bench.many.freshet_side import POLICY, ROLL
    from freshet.bench.many.grid import TRAINS, WARM_TRAINS
    from freshet.bench.many.queries import LEAST, MOST, SCHEMA
    from freshet.bench.many.side import HEAP, LOOK
    from freshet.bench.many.trial import WARM

    return {
        "never_got_going": _silent(found),
        "queries": (
            f"two predicates of {LEAST:.0%} to {MOST:.0%} together, of mixed forms and columns, and a projection (id "
            f"and an expression) over {SCHEMA}; the same texts on all sides"
        ),
        "input": (
            f"a Parquet file every {INTERVAL:g} s, the same for all sides; the first {WARM * INTERVAL:g} s are not "
            "measured. Sides take turns, each in a process with a Spark of its own, which lives through all trials "
            "with the same queries; the first trial of each side only warms up"
        ),
        "mean_s, p95_s": (
            "from the arrival of a file (its rename into the folder) to when a query's output from it could be read, "
            "over all files and queries. Freshet: when the step is committed in its log, synced to disk; with no-op "
            "sinks, the same. queries: when the Parquet sink's log (no-op: the checkpoint) has the micro-batch. "
            "foreach: when the query's write has returned. Neither of these syncs to disk. floor: when the file with "
            "all outputs has its name, synced"
        ),
        "sunk_mean_s": f"until the rows were in Freshet's Parquet sinks, which gather them for {ROLL:g} s; "
        "sunk_gain_vs_... are gains up to there",
        "answered": "share of files and queries that were answered in time; others count with the time they waited",
        "rounds_per_s": "a round answers each query once; queries: micro-batches divided by queries",
        "cpu_s_per_million": "CPU seconds, user and system, of all processes of a side, for each million of input rows "
        "times queries",
        "peak_mb": f"private memory of all processes of a side; Java's heap is at most {HEAP}",
        "driver_mb": "of the Python process alone; driver_growth_mb: at the end of a trial, against its beginning",
        "rows_checked": "rows of the output that were compared with the floor's, query by query: all are equal",
        "rows_per_s": (
            "the highest of the rates that were tried at which Freshet kept up: all files answered, and the rows that "
            "wait for the slowest query, in the mean over the last third of the feed, at most those of the third "
            "before and one file. 0: it kept up with none"
        ),
        "cpu_vs_floor": (
            f"{TRAINS} trains of {train:,} rows after {WARM_TRAINS} that warm up; both from Parquet files, Freshet "
            "through its log to its output log, all processes; the floor in one process to one file for each train"
        ),
        "limit": f"{limit:g} s each to start the queries, to answer the first files, and to answer all after the last",
        "freshet": f"policy {POLICY}, two workers; source files, a look every {LOOK:g} s",
        "latency_vs_floor": f"mean_s of Freshet over that of the floor, which looks every {LOOK:g} s, too",
        "queries_side": "a streaming query for each, FAIR pools, no trigger",
        "foreach_side": "persists the micro-batch, then a write for each query in turn, no trigger",
        "compared_at": f"{rate:g} rows/s; names that end with another rate were measured at that",
        "spread": "least and greatest of the trials; of a ratio: of the least and greatest on both sides",
    }
