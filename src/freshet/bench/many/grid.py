"""The order of trials in ``freshet bench many``: numbers of queries, sinks, rates; sides take turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from freshet.bench.interleave import interleave
from freshet.bench.many.figures import MEASURES, TrialFigures, TrialKey
from freshet.bench.many.rig import STREAMING, Rig
from freshet.bench.many.side import Backlog
from freshet.bench.many.trial import NotGoing
from freshet.bench.stage import Stage

WARM_TRAINS: Final = 6
TRAINS: Final = 8
"""Number of trains that are measured against the floor, between the warm-up and the last two."""
HALVINGS: Final = 3
"""How often the lowest of the high rates is halved if Freshet does not keep up with it."""


@dataclass(slots=True)
class TrialGrid:
    """What is to be measured.

    Args:
        stage: The stage of the benchmark.
        sides: Which sides.
        sinks: Which kinds of sinks, ``parquet`` and ``noop``.
        trials: Number of trials of each side with the first kind of sink, after one that is not measured. With the
            other kind there is one.
        rate: Rows a second at which all sides are compared.
        rates: Rows a second for many queries, ascending.
        seconds: Seconds of input in a trial.
        train: Rows of a train against the floor; 0: there are none.
        limit: Seconds after which a side is given up.
        master: Spark master.
    """

    stage: Stage
    sides: tuple[str, ...]
    sinks: tuple[str, ...]
    trials: int
    rate: float
    rates: tuple[float, ...]
    seconds: float
    train: int
    limit: float
    master: str
    found: TrialFigures = field(default_factory=TrialFigures)

    def measure(self, queries: int, loaded: bool) -> None:
        """Runs all trials with a number of queries.

        Args:
            queries: Number of queries.
            loaded: Whether they are also fed at high rates, and with long trains.
        """
        with Rig(self.stage, queries, self.master, self.seconds, self.limit) as rig:
            for sink in self.sinks:
                self._compare(rig, sink)
            if loaded and "freshet" in self.sides:
                for sink in self.sinks:
                    self._load(rig, sink)
                rig.end(STREAMING)
                self._work_off(rig)

    def _compare(self, rig: Rig, sink: str) -> None:
        first = sink == self.sinks[0]
        rounds = self.trials if first else 1
        # The floor has no sinks: its trials with one kind count for the other, too.
        sides = [side for side in self.sides if first or side != "floor"]
        places = {side: TrialKey(rig.queries, sink, self.rate, side) for side in sides}
        trials = {side: self._trial(rig, place) for side, place in places.items()}
        with self.stage.steps(f"{rig.queries} queries, {self.rate:g} rows/s, {sink}", rounds + first) as advance:
            if first:
                interleave(trials, 1, advance)
                # No side is to blame for what it takes to warm Java up.
                for place in places.values():
                    self.found.outcomes.pop(place, None)
            interleave(trials, rounds, advance)

    def _load(self, rig: Rig, sink: str) -> None:
        """Runs Freshet at ascending rates until it does not keep up; the other sides once, at the first rate."""
        first, rounds = self.rates[0], self.trials if sink == self.sinks[0] else 1
        own = TrialKey(rig.queries, sink, first, "freshet")
        with self.stage.steps(f"{rig.queries} queries, {first:g} rows/s, {sink}", rounds) as advance:
            for _ in range(rounds):
                self._trial(rig, own)()
                advance()
        for side in self.sides if sink == self.sinks[0] else ():
            if side != "freshet":
                self._trial(rig, TrialKey(rig.queries, sink, first, side))()
        lower = [first / 2**times for times in range(1, HALVINGS + 1)]
        for rate in self.rates[1:] if self._kept_up(own) else lower:
            place = TrialKey(rig.queries, sink, rate, "freshet")
            self._trial(rig, place)()
            if self._kept_up(place) != self._kept_up(own):
                break

    def _kept_up(self, place: TrialKey) -> bool:
        outcomes = self.found.outcomes.get(place, ())
        return bool(outcomes) and all(outcome.kept_up for outcome in outcomes)

    def _trial(self, rig: Rig, place: TrialKey) -> Callable[[], None]:
        def run() -> None:
            reason = self._hopeless(place)
            try:
                if reason is not None:
                    raise NotGoing(reason)
                outcome = rig.trial(place.side, place.rate, place.sink == "parquet")
            except NotGoing as error:
                self.found.silent.setdefault(place, str(error))
                self.stage.say(f"{_title(place)}: never got going: {error}")
            else:
                self.found.outcomes.setdefault(place, []).append(outcome)
                self.stage.say(
                    f"{_title(place)}: mean {MEASURES['mean_s'](outcome):.3f} s, "
                    f"p95 {MEASURES['p95_s'](outcome):.3f} s, {outcome.rounds:.2f} rounds/s, "
                    f"{outcome.cpu.total:.3f} CPU s per million query-rows, "
                    f"{'kept up' if outcome.kept_up else 'fell behind'}"
                )

        return run

    def _hopeless(self, place: TrialKey) -> str | None:
        """Why a trial is not worth its time: the side did not get going with fewer queries or a lower rate."""
        for other in self.found.silent:
            if (
                (other.side, other.sink) == (place.side, place.sink)
                and other.queries <= place.queries
                and other.rate <= place.rate
            ):
                return f"not tried: it never got going with {other.queries} queries at {other.rate:g} rows/s"
        return None

    def _work_off(self, rig: Rig) -> None:
        if not self.train or "floor" not in self.sides:
            return

        def work_off(side: str) -> Callable[[], None]:
            def run() -> None:
                backlog: Backlog = rig.work_off(side, self.train, WARM_TRAINS + TRAINS + 2, WARM_TRAINS)
                self.found.backlogs.setdefault((side, rig.queries), []).append(backlog)
                used = backlog.answering.total + backlog.taking_in.total
                self.stage.say(f"{side}: {used / (backlog.rows * rig.queries / 1e6):.4f} CPU s per million query-rows")

            return run

        with self.stage.steps(f"{rig.queries} queries, trains of {self.train:,} rows", self.trials) as advance:
            interleave({side: work_off(side) for side in ("freshet", "floor")}, self.trials, advance)


def _title(place: TrialKey) -> str:
    return f"{place.side}, {place.queries} queries, {place.rate:g} rows/s, {place.sink}"
