"""``freshet bench qos``: what answers are worth under a load that fluctuates around the capacity, on Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
import typer

from freshet.bench.figures import Spread, mean, same_order
from freshet.bench.freshness import by_mean, order
from freshet.bench.freshness.fit import rows_per_train
from freshet.bench.freshness.load import LoadBatch, MeasuredCosts
from freshet.bench.freshness.model import predict_qos
from freshet.bench.freshness.queries import Question
from freshet.bench.qos.load import DEADLINES, LINKS, TIMES, Storm, asked
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.stage import Stage
from freshet.model import Curve
from freshet.policies import create
from freshet.quality.qos import Qos
from freshet.reproduce.interval import interval_90
from freshet.spark.session.residency import parse_resident

if TYPE_CHECKING:
    from freshet.bench.freshness.study import Played, Study

POLICIES: Final = {"slope_slack": "slope-slack-push(1)", "fixed": "fixed-priority-push(1)", "rr": "rr"}
"""All of them run one query per step over whole queues, and decide before every step."""
_FIRST_ROWS: Final = 5_000
_LONG: Final = 4
"""Number of arrivals in the long trains of the calibration: in a storm trains are long."""


@dataclass(frozen=True, slots=True)
class QosRound:
    """A repetition: all policies over the same arrivals, with the same curves."""

    events: Sequence[LoadBatch]
    curves: Mapping[str, Curve]
    played: Mapping[str, Played]
    predicted: Mapping[str, Qos]
    costs: MeasuredCosts


@bench("What answers are worth on Spark while the load fluctuates, under three policies.", takes="10 to 20 minutes")
def qos(
    stage: Stage,
    repetitions: Annotated[int, typer.Option(min=1, help="Repetitions; each runs every policy.")] = 7,
    queries: Annotated[int, typer.Option(min=4, help="Queries; four deadlines go to them in turn.")] = 8,
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
    """The network of CAR Table 4.4, scaled: equal queries, which get their tuples together, with four deadlines in
    turn. Costs and overhead are measured first. Then a calm of 60 % of the capacity, a storm of 130 % and another calm
    (CAR §4.6.2) are played under slope-slack, fixed priorities (both with push-through) and round robin in turn, over
    the same arrivals, one query per step. The simulator gets the measured costs and the same arrivals.
    `order_as_predicted` is the share of pairs of policies that come in the predicted order.
    """
    from freshet.bench.freshness.study import Study

    questions, load = asked(queries), Storm(TIMES * trains)
    chosen = parse_resident(resident)
    rounds: list[QosRound] = []
    with (
        stage.spark("qos", master) as session,
        Study(session, stage.folder / "state", questions, chosen) as study,
    ):
        costs = _calibrate(stage, study, questions, load, warm_up)
        stage.say(
            f"a step's overhead is {costs.overhead * 1e3:.1f} ms, a round {load.round(costs, questions):.2f} s, "
            f"a run {load.seconds(costs, questions):.0f} s"
        )
        with stage.steps("runs", repetitions * len(POLICIES)) as advance:
            for number in range(repetitions):
                rounds.append(_round(study, questions, load, costs, seed * 1000 + number, advance))
                # The machine's speed drifts: the next arrivals are sized by the last measurement.
                costs = rounds[-1].costs
    return Result.of(_figures(rounds, questions), _conditions(rounds, load, questions))


def _calibrate(stage: Stage, study: Study, questions: Sequence[Question], load: Storm, warm_up: int) -> MeasuredCosts:
    """Measures what rows and steps cost, with trains of their later sizes."""
    with stage.steps("warming up", warm_up) as advance:
        for _ in range(warm_up):
            study.work_off(create("rr"), 100)
            advance()
    with stage.steps("calibrating", 3) as advance:
        rows = _FIRST_ROWS
        for times in (1, 1, _LONG):
            costs = MeasuredCosts.of(study.work_off(create("rr"), times * rows))
            rows = min(load.rows(costs, questions), 40 * _FIRST_ROWS)
            advance()
    return costs


def _round(
    study: Study,
    questions: Sequence[Question],
    load: Storm,
    known: MeasuredCosts,
    seed: int,
    advance: Callable[[], None],
) -> QosRound:
    events, curves = load.events(known, questions, seed), load.curves(known, questions)
    study.set_curves(curves)
    names = list(POLICIES)
    turn = seed % len(names)
    played = {}
    for name in names[turn:] + names[:turn]:
        policy = create(POLICIES[name])
        # The policy's own order works off what is left at the end, so that every tuple counts as it was served.
        played[name] = study.play(policy, events, load.seconds(known, questions), settle=policy)
        advance()
    costs = MeasuredCosts.of([step for each in played.values() for step in each.steps]).over(known)
    lags = np.mean([each.lags for each in played.values()], axis=0)
    predicted = {
        name: predict_qos(create(text), events, lags, questions, costs, curves) for name, text in POLICIES.items()
    }
    return QosRound(events, curves, played, predicted, costs)


def _figures(rounds: Sequence[QosRound], questions: Sequence[Question]) -> dict[str, float | Spread]:
    figures: dict[str, float | Spread] = {}
    measured = {name: [each.played[name].qos for each in rounds] for name in POLICIES}
    predicted = {name: [each.predicted[name] for each in rounds] for name in POLICIES}
    for name in POLICIES:
        figures[f"qos_{name}"] = mean([found.average for found in measured[name]])
    for other in ("fixed", "rr"):
        figures[f"qos_slope_slack_minus_{other}"] = confident(gains(measured, other))
    for name in POLICIES:
        figures[f"qos_per_tuple_{name}"] = mean([found.per_tuple for found in measured[name]])
    for name in POLICIES:
        figures[f"predicted_qos_{name}"] = mean([found.average for found in predicted[name]])
    figures["order_as_predicted"] = same_order(*_averages(rounds))
    every = [each.played[name] for each in rounds for name in POLICIES]
    steps = [step for played in every for step in played.steps]
    return figures | {
        "utilization": mean([played.busy for played in every]),
        "overhead_ms": mean([each.costs.overhead for each in rounds]).times(1e3),
        "work_per_step_vs_overhead": sum(step.work for step in steps) / sum(step.overhead for step in steps),
        "rows_per_train": rows_per_train(steps),
        "steps": len(steps),
        "arrival_lag_ms": mean([float(np.mean(played.lags)) for played in every]).times(1e3),
    }


def _averages(rounds: Sequence[QosRound]) -> list[dict[str, float]]:
    """The mean QoS of each policy, as measured and as predicted."""
    measured = {name: [each.played[name].qos.average for each in rounds] for name in POLICIES}
    return by_mean(measured, {name: [each.predicted[name].average for each in rounds] for name in POLICIES})


def gains(found: Mapping[str, Sequence[Qos]], other: str) -> list[float]:
    """Average QoS of slope-slack minus another policy's, repetition by repetition."""
    return [ours.average - its.average for ours, its in zip(found["slope_slack"], found[other], strict=True)]


def confident(values: Sequence[float]) -> Spread:
    """The mean with its 90 % confidence interval; with the value alone if there is only one.

    >>> confident([0.5, 1.0, 1.5])
    Spread(middle=1.0, low=0.157..., high=1.842...)
    """
    low, high = interval_90(values) or (values[0], values[0])
    return Spread(fmean(values), low, high)


def by_deadline(found: Sequence[Qos], questions: Sequence[Question]) -> list[float]:
    """Average QoS of the queries of each deadline, the tightest first."""
    kinds = [[each.name for each in questions[kind :: len(DEADLINES)]] for kind in range(len(DEADLINES))]
    return [fmean([each.by_query.get(name, 1.0) for each in found for name in names] or [1.0]) for names in kinds]


def _conditions(rounds: Sequence[QosRound], load: Storm, questions: Sequence[Question]) -> dict[str, Any]:
    measured = {name: [each.played[name].qos for each in rounds] for name in POLICIES}
    promises = [sorted({curve.promise for curve in each.curves.values()}) for each in rounds]
    differences = {
        f"slope_slack_minus_{other}": [round(gain, 4) for gain in gains(measured, other)] for other in ("fixed", "rr")
    }
    return {
        "paired_differences": differences,
        "qos_by_deadline": {
            name: [round(value, 4) for value in by_deadline(found, questions)] for name, found in measured.items()
        },
        "order": {
            name: order(means)[::-1] for name, means in zip(("measured", "predicted"), _averages(rounds), strict=True)
        },
        "policies": f"{POLICIES}: one query per step, all that waits for it, a decision before every step",
        "queries": (
            f"{len(questions)} of two predicates and a projection over one stream, arithmetic of {LINKS} links each: "
            "CAR Table 4.4, scaled from 1,000 applications"
        ),
        "curves": (
            "full utility up to the deadline, none soon after it; deadlines in s by repetition: "
            f"{[[round(promise, 2) for promise in each] for each in promises]}: "
            f"{', '.join(f'{deadline:.2f}' for deadline in DEADLINES)} rounds, to the queries in turn"
        ),
        "load": (
            f"{load.calm:.0%} of the capacity, then {load.storm:.0%}, then {load.calm:.0%} (CAR §4.6.2); the capacity "
            "is what one worker works off without overhead, from costs measured before the first repetition, and again "
            "in each for the next"
        ),
        "arrivals": (
            f"{load.counts} in the three phases, evenly spaced, for all queries together; of "
            f"{[each.events[0].rows for each in rounds]} rows by repetition: {load.times:g} overheads of work for a "
            "query"
        ),
        "qos": (
            "mean utility of a query's output tuples, then over queries; per_tuple: over all tuples. A latency is from "
            "when rows were due to the end of the commit; what is left at the end is worked off by the same policy and "
            "counts"
        ),
        "simulator": "one worker, the same policies, curves and arrivals; costs, overhead and lags as measured in the "
        "same repetition, the mean over the policies",
        "spread": "least and greatest of a repetition; of qos_slope_slack_minus_...: the 90 % confidence interval of "
        "the mean. Figures are means over repetitions",
    }
