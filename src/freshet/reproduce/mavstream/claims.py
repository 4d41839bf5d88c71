"""The claims of MAV §5: what fixed strategies are good at, and what the run-time optimizer makes of them.

The paper says neither the load nor what operators cost. So each claim is measured at several loads, which are its
readings, and decided at one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from freshet.reproduce.mavstream.runs import BURSTS, LOAD, LOADS, STRATEGIES, MavLoad, MavResult, change, runs
from freshet.reproduce.registry import Measured, claim
from freshet.reproduce.trial import Trial
from freshet.simulation.workloads.mavstream import FEW

ABOUT = "eight operators, two joins, three Poisson streams; readings: other loads"


def by_load(
    measure: Callable[[MavLoad], Sequence[float]], loads: Sequence[MavLoad] = LOADS, own: MavLoad = LOAD
) -> Measured:
    """A figure at the load that decides, with all loads as readings."""
    found = {load: measure(load) for load in loads}
    texts = {load: f"load {load[0]:g}{', with bursts' if load[1] else ''}" for load in loads}
    return Measured(found[own], {texts[load]: values for load, values in found.items()})


def fixed(trial: Trial, load: MavLoad) -> dict[str, list[MavResult]]:
    """The runs of each fixed strategy, by seed."""
    return {strategy: runs(trial, "latency and memory", load, strategy) for strategy in STRATEGIES}


def over_best(trial: Trial, load: MavLoad, strategy: str, figure: Callable[[MavResult], float]) -> list[float]:
    """A figure of a strategy over the least of the other two, for each seed."""
    found = fixed(trial, load)
    others = [found[name] for name in STRATEGIES if name != strategy]
    return [figure(own) / min(map(figure, rest)) for own, *rest in zip(found[strategy], *others, strict=True)]


@claim(
    "mavstream.strategies.pcs-least-latency",
    source="MAV §3.1, §5",
    published="below 1",
    how=f"mean latency of all answers under PCS over the least of Segment and Simplified Segment; {ABOUT}",
    high=0.999,
)
def _(trial: Trial) -> Measured:
    return by_load(lambda load: over_best(trial, load, "pcs", lambda run: run.answers))


@claim(
    "mavstream.strategies.segment-least-memory",
    source="MAV §3.1, §5",
    published="below 1",
    how=f"mean bytes in queues under Segment over the least of PCS and Simplified Segment; {ABOUT}",
    high=0.999,
)
def _(trial: Trial) -> Measured:
    return by_load(lambda load: over_best(trial, load, "segment", lambda run: run.mean("memory")))


@claim(
    "mavstream.fig5.one-switch",
    source="MAV §5, Fig. 5",
    published=1,
    how=f"switches of the optimizer, which begins with Segment; latency of 500 ms expected; 0 if not to PCS; {ABOUT}",
    low=1.0,
    high=1.0,
)
def _(trial: Trial) -> Measured:
    def switches(load: MavLoad) -> list[float]:
        found = runs(trial, "latency", load)
        return [float(len(run.switches)) if run.switches and run.switches[-1].to == "pcs" else 0.0 for run in found]

    return by_load(switches)


@claim(
    "mavstream.fig6.latency-of-pcs",
    source="MAV §5, Fig. 6",
    published=1.0,
    how=f"mean latency of the optimizer over that of PCS, over the second half of the run; {ABOUT}",
    low=0.95,
    high=1.05,
)
def _(trial: Trial) -> Measured:
    def ratio(load: MavLoad) -> list[float]:
        pairs = zip(runs(trial, "latency", load), runs(trial, "latency", load, "pcs"), strict=True)
        half = change(trial)
        return [ours.mean("latency", half) / pcs.mean("latency", half) for ours, pcs in pairs]

    return by_load(ratio)


@claim(
    "mavstream.fig7.same-decisions",
    source="MAV §5, Fig. 7-8",
    published=0,
    how="looks after which the strategy differs with and without a memory expectation of the class dont-care; latency "
    f"of 500 ms of the class must; rates of 800, 950 and 500 tuples/s, doubled in bursts; {ABOUT}",
    low=0.0,
    high=0.0,
)
def _(trial: Trial) -> Measured:
    def differ(load: MavLoad) -> list[float]:
        pairs = zip(
            runs(trial, "latency, dont-care memory", load, rates=FEW),
            runs(trial, "latency", load, rates=FEW),
            strict=True,
        )
        return [float(sum(map(str.__ne__, one.strategies, two.strategies))) for one, two in pairs]

    return by_load(differ, BURSTS, BURSTS[0])


@claim(
    "mavstream.fig9.pcs-before",
    source="MAV §5, Fig. 9",
    published=1,
    how="share of the looks between the first switch and the moment at which less memory is expected that find PCS; "
    f"latency of 500 ms, memory of 10 MB, later 1 MB, all of the class must; {ABOUT}",
    low=1.0,
)
def _(trial: Trial) -> Measured:
    return by_load(lambda load: [_pcs_before(run, change(trial)) for run in both(trial, load)])


@claim(
    "mavstream.fig9.segment-after",
    source="MAV §5, Fig. 9-10",
    published=1,
    how="share of the switches after less memory is expected that go to Segment if memory alone is violated, and to "
    f"Simplified Segment if latency is, too; 0 if there are none; {ABOUT}",
    low=1.0,
)
def _(trial: Trial) -> Measured:
    return by_load(lambda load: [_right_after(run, change(trial)) for run in both(trial, load)])


@claim(
    "mavstream.fig10.memory-below-pcs",
    source="MAV §5, Fig. 10",
    published="noticeably below 1",
    how=f"mean bytes in queues after less memory is expected, the optimizer's over those of PCS; {ABOUT}",
    high=0.999,
)
def _(trial: Trial) -> Measured:
    def ratio(load: MavLoad) -> list[float]:
        pairs = zip(both(trial, load), fixed(trial, load)["pcs"], strict=True)
        return [ours.mean("memory", change(trial)) / pcs.mean("memory", change(trial)) for ours, pcs in pairs]

    return by_load(ratio)


@claim(
    "mavstream.fig9.violated-seconds",
    source="MAV §5, Fig. 9-10",
    published="better for both measures than a single strategy",
    how="violated seconds of latency (of answers) and memory, the optimizer's minus those of the best fixed strategy, "
    "over the length of the run; readings: also with the latency that the monitor sees, which is at least the age of "
    f"the oldest waiting tuple; {ABOUT}",
    high=0.0,
)
def _(trial: Trial) -> Measured:
    def more(load: MavLoad, figure: Callable[[MavResult], float]) -> list[float]:
        found = zip(both(trial, load), *fixed(trial, load).values(), strict=True)
        return [(figure(ours) - min(map(figure, rest))) / ours.times[-1] for ours, *rest in found]

    answers = by_load(lambda load: more(load, lambda run: run.violated_s))
    watched = by_load(lambda load: more(load, lambda run: run.watched_s))
    return Measured(
        answers.values,
        {**answers.readings, **{f"{text}, as the monitor sees it": each for text, each in watched.readings.items()}},
    )


def both(trial: Trial, load: MavLoad) -> list[MavResult]:
    """The optimizer with expectations of latency and memory, both of the class must."""
    return runs(trial, "latency and memory", load)


def _pcs_before(run: MavResult, until: float) -> float:
    first = min((each.time for each in run.switches), default=until)
    found = [name for time, name in zip(run.times, run.strategies, strict=True) if first < time <= until]
    return found.count("pcs") / len(found) if found else 0.0


def _right_after(run: MavResult, since: float) -> float:
    wanted = {frozenset({"memory"}): "segment", frozenset({"latency", "memory"}): "simplified-segment"}
    late = [each for each in run.switches if each.time >= since]
    return sum(each.to == wanted.get(each.violated) for each in late) / len(late) if late else 0.0
