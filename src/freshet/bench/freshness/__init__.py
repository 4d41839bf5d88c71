"""``freshet bench freshness``: how stale answers are under each policy, on Spark and as the simulator predicts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
import typer

from freshet.bench.figures import Spread, mean, over, same_order
from freshet.bench.freshness.fit import fit_handling, rows_per_train
from freshet.bench.freshness.load import BURST, Load, LoadBatch, MeasuredCosts
from freshet.bench.freshness.model import predict
from freshet.bench.freshness.queries import LINKS, SCHEMA, SELECTIVITIES, Question, questions
from freshet.bench.freshness.sets import with_sets
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.stage import Stage
from freshet.policies import Policy, create
from freshet.spark.session.residency import parse_resident

if TYPE_CHECKING:
    from freshet.bench.freshness.study import Played, Study

POLICIES: Final = {"fas": "fas-mcq", "rb": "rb-mcq", "rr": "rr", "fcfs": "fcfs"}
MODES: Final[Mapping[str, Callable[[str], Policy]]] = {"": create, "_set": with_sets}
"""One query per step, and sets, by the suffix of their figures."""
STREAMS: Final = tuple(f"s{number}" for number in range(1, 21))
BURSTY: Final = frozenset(STREAMS[1::2])
WORK: Final = 5.5
"""Work of a step over its overhead for which arrivals are sized: above 5, because both vary."""
_FEW_ROWS: Final = 100
_FIRST_ROWS: Final = 20_000
_FEW: Final = 12
"""With fewer arrivals in a run, policies have little to decide."""

Variant = tuple[str, str]
"""(suffix of the mode, short name of the policy)"""


@dataclass(frozen=True, slots=True)
class FreshnessRound:
    """A repetition: all policies in both modes over the same arrivals."""

    events: Sequence[LoadBatch]
    played: Mapping[Variant, Played]
    predicted: Mapping[Variant, float]
    replayed: Mapping[Variant, float]
    """Predicted with the costs and lags of each run by itself, however fast the machine was at that time."""
    costs: Mapping[str, MeasuredCosts]
    """As measured in this round, by mode."""


@bench("Staleness on Spark under four policies, beside what the simulator predicts.", takes="about fourteen minutes")
def freshness(
    stage: Stage,
    seconds: Annotated[float, typer.Option(min=0.5, help="Seconds of a run.")] = 16.0,
    repeat: Annotated[int, typer.Option(min=1, help="Repetitions; each runs every policy in both modes.")] = 5,
    queries: Annotated[int, typer.Option(min=len(STREAMS), help="Queries.")] = 50,
    utilization: Annotated[float, typer.Option(min=0.1, max=2.0, help="Share of what one worker sustains.")] = 0.9,
    trains: Annotated[
        float, typer.Option(min=0.01, max=10.0, help="Size of the trains; 0.1: ten times smaller than usual.")
    ] = 1.0,
    resident: Annotated[
        str, typer.Option(help="Residents: auto, off (each step is a Spark job) or a number.")
    ] = "auto",
    warm_up: Annotated[int, typer.Option(min=1, help="Rounds of small steps before, while Java compiles.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Seed of queries and arrivals.")] = 0,
    master: Annotated[str, typer.Option(help="Spark master; one core is one worker, as simulated.")] = "local[1]",
) -> Result:
    """Queries of two predicates and a projection with costs from 1 to 32 run over twenty streams, ten of them bursty.
    Costs and overhead are measured first. Arrivals are sized so that they need the given share of the time while a
    step's work is at least five times its overhead, or as `--trains` says. Then FAS-MCQ, RB-MCQ, RR and FCFS take
    turns over the same arrivals, one query per step and in sets. The simulator gets the measured costs and the same
    arrivals. `order_as_predicted` is the share of pairs of policies that come in the predicted order.
    """
    from freshet.bench.freshness.study import Study

    asked = questions(queries, STREAMS, seed)
    load = Load(seconds, utilization, WORK * trains, BURSTY)
    chosen = parse_resident(resident)
    rounds: list[FreshnessRound] = []
    with stage.spark("freshness", master) as session:
        stage.say(f"installing {queries} queries ...")
        with Study(session, stage.folder / "state", asked, chosen) as study:
            costs = calibrate(stage, study, asked, load, warm_up)
            stage.say(f"a step's overhead is {costs.overhead * 1e3:.1f} ms")
            with stage.steps("runs", repeat * len(MODES) * len(POLICIES)) as advance:
                for number in range(repeat):
                    events = load.events(costs, asked, seed * 1000 + number)
                    if len(events) < _FEW:
                        stage.say(
                            f"only {len(events)} arrivals fit into a run: take more --seconds or a faster machine"
                        )
                    rounds.append(_round(study, asked, costs, events, seconds, number, advance))
                    # The machine's speed drifts: the next arrivals are sized by the last measurement.
                    costs = rounds[-1].costs[""]
    return Result.of(_figures(rounds), _conditions(rounds, load, asked))


def calibrate(stage: Stage, study: Study, asked: Sequence[Question], load: Load, warm_up: int) -> MeasuredCosts:
    """Measures what rows and steps cost, one query per step: with short trains, and with trains of their later size."""
    with stage.steps("warming up", warm_up) as advance:
        for _ in range(warm_up):
            study.work_off(create("rr"), _FEW_ROWS)
            advance()
    with stage.steps("calibrating", 4) as advance:
        short = study.work_off(create("rr"), _FEW_ROWS)
        advance()
        longer = study.work_off(create("rr"), _FIRST_ROWS)
        advance()
        events = load.events(MeasuredCosts.of(longer, fit_handling(short + longer)), asked, 0)
        rows = int(np.median([event.rows for event in events]))
        longest = study.work_off(create("rr"), max(1, min(rows, 20 * _FIRST_ROWS)))
        advance()
        # Once more: if the machine becomes faster or slower meanwhile, that must not look like a price of rows.
        short += study.work_off(create("rr"), _FEW_ROWS)
        advance()
    return MeasuredCosts.of(longest, fit_handling(short + longer + longest))


def _round(
    study: Study,
    asked: Sequence[Question],
    known: MeasuredCosts,
    events: Sequence[LoadBatch],
    seconds: float,
    number: int,
    advance: Callable[[], None],
) -> FreshnessRound:
    sides = [(mode, policy) for mode in MODES for policy in POLICIES]
    turn = 3 * number % len(sides)
    played = {}
    for mode, policy in sides[turn:] + sides[:turn]:
        played[mode, policy] = study.play(MODES[mode](POLICIES[policy]), events, seconds)
        advance()
    # One set of costs for all policies of a mode: differences between policies must come from their decisions.
    costs = {
        mode: MeasuredCosts.of(
            [step for policy in POLICIES for step in played[mode, policy].steps], known.handling
        ).over(known)
        for mode in MODES
    }
    lags = {mode: np.mean([played[mode, policy].lags for policy in POLICIES], axis=0) for mode in MODES}
    predicted = {
        (mode, policy): predict(MODES[mode](POLICIES[policy]), events, lags[mode], asked, costs[mode], seconds)
        for mode, policy in sides
    }
    replayed = {
        (mode, policy): predict(MODES[mode](POLICIES[policy]), events, run.lags, asked, own, seconds)
        for (mode, policy), run in played.items()
        for own in (MeasuredCosts.of(run.steps, known.handling).over(costs[mode]) if run.steps else costs[mode],)
    }
    return FreshnessRound(events, played, predicted, replayed, costs)


def _figures(rounds: Sequence[FreshnessRound]) -> dict[str, float | Spread]:
    figures: dict[str, float | Spread] = {}
    for mode in MODES:
        measured = {policy: [each.played[mode, policy].mean for each in rounds] for policy in POLICIES}
        predicted = {policy: [each.predicted[mode, policy] for each in rounds] for policy in POLICIES}
        replayed = {policy: [each.replayed[mode, policy] for each in rounds] for policy in POLICIES}
        for other in ("rb", "rr", "fcfs"):
            figures[f"staleness_fas_vs_{other}{mode}"] = over(measured["fas"], measured[other])
            figures[f"predicted_fas_vs_{other}{mode}"] = over(predicted["fas"], predicted[other])
        figures[f"order_as_predicted{mode}"] = same_order(*by_mean(measured, predicted))
        figures[f"simulator_error{mode}"] = error(predicted, measured)
        figures[f"simulator_error_by_run{mode}"] = error(replayed, measured)
        for policy in POLICIES:
            figures[f"staleness_{policy}{mode}"] = mean(measured[policy])
            figures[f"predicted_staleness_{policy}{mode}"] = mean(predicted[policy])
        figures |= _load_figures(rounds, mode)
    lags = [float(np.mean(played.lags)) for each in rounds for played in each.played.values()]
    figures["arrival_lag_ms"] = mean(lags).times(1e3)
    return figures


def _load_figures(rounds: Sequence[FreshnessRound], mode: str) -> dict[str, float | Spread]:
    """Figures on the runs of a mode, so that one can judge them."""
    runs = {policy: [each.played[mode, policy] for each in rounds] for policy in POLICIES}
    every = [played for some in runs.values() for played in some]
    fixed = [each.costs[mode].overhead for each in rounds]
    ratios = {policy: _work_over_overhead(some, fixed) for policy, some in runs.items()}
    return {
        f"utilization{mode}": mean([played.busy for played in every]),
        f"overhead_ms{mode}": mean([each.costs[mode].overhead for each in rounds]).times(1e3),
        f"work_per_step_vs_overhead{mode}": Spread(
            _work_over_overhead(every, fixed * len(runs)), min(ratios.values()), max(ratios.values())
        ),
        f"rows_per_train{mode}": rows_per_train([step for played in every for step in played.steps]),
        f"queries_per_step{mode}": float(np.mean([step.members for played in every for step in played.steps])),
        f"steps{mode}": sum(len(played.steps) for played in every),
    }


def _work_over_overhead(runs: Sequence[Played], overheads: Sequence[float]) -> float:
    """Work over overhead of all steps together; each run has the overhead of its round."""
    overhead = sum(each * len(played.steps) for played, each in zip(runs, overheads, strict=True))
    return sum(step.seconds for played in runs for step in played.steps) / overhead - 1.0


def by_mean(*sides: Mapping[str, Sequence[float]]) -> list[dict[str, float]]:
    """For each side the means over repetitions, by policy."""
    return [{policy: float(np.mean(values)) for policy, values in side.items()} for side in sides]


def order(values: Mapping[str, float]) -> list[str]:
    """The policies in the order of their values, least first.

    >>> order({"fas": 0.2, "rr": 0.1})
    ['rr', 'fas']
    """
    return sorted(values, key=values.__getitem__)


def error(predicted: Mapping[str, Sequence[float]], measured: Mapping[str, Sequence[float]]) -> Spread:
    """Mean over policies of |predicted - measured| / measured, of the means over repetitions; the ends are the smallest
    and the greatest of a repetition.

    >>> error({"a": [1.0, 3.0], "b": [1.0, 1.0]}, {"a": [2.0, 2.0], "b": [1.0, 1.0]})
    Spread(middle=0.0, low=0.25, high=0.25)
    """

    def apart(guess: Sequence[float], fact: Sequence[float]) -> float:
        return float(np.mean([abs(one - other) / other for one, other in zip(guess, fact, strict=True)]))

    means = [[float(np.mean(side[policy])) for policy in measured] for side in (predicted, measured)]
    repetitions = [
        apart([predicted[policy][number] for policy in measured], [measured[policy][number] for policy in measured])
        for number in range(len(next(iter(measured.values()))))
    ]
    return Spread(apart(*means), min(repetitions), max(repetitions))


def _conditions(rounds: Sequence[FreshnessRound], load: Load, asked: Sequence[Question]) -> dict[str, Any]:
    sizes = sorted({event.rows for each in rounds for event in each.events})
    costs = [rounds[-1].costs[""].per_row(each.name) * 1e9 for each in asked]
    handling = rounds[-1].costs[""].handling
    return {
        "queries": (
            f"{len(asked)} of two predicates and a projection (id and a number) over streams of {SCHEMA}; arithmetic "
            f"of {LINKS[0]} to {LINKS[-1]} links, no part shared; selectivity {SELECTIVITIES[0]} to "
            f"{SELECTIVITIES[-1]}; {min(costs):.0f} to {max(costs):.0f} ns per row; all vectorised"
        ),
        "arrivals": (
            f"{[len(each.events) for each in rounds]} by repetition, of {sizes[0]:,} to {sizes[-1]:,} rows, at times "
            f"of Poisson processes; {len(BURSTY)} of {len(STREAMS)} streams bursty: {BURST} times the rows, as much "
            "rarer. Rows bear the time at which they were due; arrival_lag_ms is how much later they were durably in "
            "the log"
        ),
        "load": (
            f"sized for {load.utilization:g} of the time, overhead of one step per query and arrival included; costs "
            "measured before the first repetition, and again in each for the next. utilization: share of the time "
            "in which a step was going on"
        ),
        "worker": "one step at a time, one Spark task in it; policies learn costs while running, and keep what they "
        "learned from run to run",
        "staleness": (
            f"1 - F, mean over queries, exact, over {load.seconds:g} s from the first arrival; what waits at the end "
            "is worked off before the next run"
        ),
        "one_query": "figures without suffix: each step is all that waits for one query",
        "sets": (
            "figures with _set: fas-mcq and rb-mcq as +set. rr and fcfs have no such form; they run the next queries "
            "of their order together until the expected work reaches the price of a step, which is the same for all"
        ),
        "overhead": (
            "of a step: from when it could begin to the end of its commit, without the work in operators and without "
            "handling rows, which counts as work. Handling: least squares over steps of short and of long trains "
            f"before the first repetition, {handling.row_in * 1e9:.1f} ns for a row that a query reads and "
            f"{handling.row_out * 1e9:.1f} ns for one that it writes. Spread of the work over the overhead: least and "
            "greatest of a policy"
        ),
        "simulator": (
            "one worker, the same policies and arrivals; cost and selectivity of each operator, overhead of a step and "
            "lag of each arrival as measured in the same repetition, the mean over the policies of a mode; tuples "
            "depart with their step"
        ),
        "by_run": (
            "simulator_error_by_run: costs, overhead and lags of each run by itself. Where it is well below "
            "simulator_error, the machine was not equally fast in all runs of a repetition. repetitions: staleness, "
            "predicted, predicted by run, and utilization of each"
        ),
        "order": _orders(rounds),
        "repetitions": _repetitions(rounds),
        "spread": "least and greatest of a repetition; figures are means over repetitions, or ratios of these",
    }


def _orders(rounds: Sequence[FreshnessRound]) -> dict[str, list[str]]:
    """The policies from the least stale on, as measured and as predicted, by mode."""
    found = {}
    for mode in MODES:
        measured = {policy: [each.played[mode, policy].mean for each in rounds] for policy in POLICIES}
        predicted = {policy: [each.predicted[mode, policy] for each in rounds] for policy in POLICIES}
        for name, means in zip(("measured", "predicted"), by_mean(measured, predicted), strict=True):
            found[f"{name}{mode}"] = order(means)
    return found


def _repetitions(rounds: Sequence[FreshnessRound]) -> dict[str, list[list[float]]]:
    """(staleness, as predicted, as predicted by run, utilization) of each repetition, by policy and mode."""
    return {
        f"{policy}{mode}": [
            [
                round(figure, 4)
                for figure in (
                    each.played[mode, policy].mean,
                    each.predicted[mode, policy],
                    each.replayed[mode, policy],
                    each.played[mode, policy].busy,
                )
            ]
            for each in rounds
        ]
        for mode in MODES
        for policy in POLICIES
    }
