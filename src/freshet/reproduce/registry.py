"""The registry of claims: what was published, how we measure it, and in which band we accept it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from freshet.model import UserError
from freshet.reproduce.interval import interval_90
from freshet.reproduce.trial import Trial

PAPERS: Final = {
    "fas": "Tuning QoD in stream processing engines: freshness-aware scheduling (FAS)",
    "aurora": "Resource scheduling for data streams: Aurora's run time and QoS-aware schedulers (CAR ch. 3-4)",
    "mirror": "Resource scheduling for data refreshing: perceived freshness of mirrors (CAR ch. 2)",
    "mavstream": "Runtime optimization of continuous queries: MavStream's run-time optimizer (MAV)",
    "rtstream": "Prediction-based QoS management for real-time data streams: RTStream (RT)",
}
"""Papers by short name. Each has a package or a module of that name here; importing it registers its claims."""

FULL_SEEDS: Final = {"rtstream": 10}
"""Number of seeds in full mode, of papers that name one."""
CLAIMS: dict[str, list[Claim]] = {}


@dataclass(frozen=True, slots=True)
class Measured:
    """What a claim's function found.

    Args:
        values: One value for each seed.
        readings: The same with other readings of what the paper leaves open, one value per seed each, by a text that
            says which.
        skipped: Why nothing could be measured, if so.
    """

    values: Sequence[float]
    readings: Mapping[str, Sequence[float]] = field(default_factory=dict)
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """One published statement.

    Args:
        id: ``paper.figure.what``.
        source: The place in the paper.
        published: The published figure, as a number if there is one.
        how: What we measure.
        low: The smallest value that we accept; None: any.
        high: The greatest value that we accept; None: any.
        measure: Measures it.
    """

    id: str
    source: str
    published: float | str
    how: str
    low: float | None
    high: float | None
    measure: Callable[[Trial], Measured]

    def check(self, trial: Trial) -> dict[str, Any]:
        """Measures the claim; JSON-ready. ``ours``, the mean over the seeds, decides; ``spread`` is their range, and
        ``interval_90`` the 90 % confidence interval of the mean."""
        found = self.measure(trial)
        result: dict[str, Any] = {
            "id": self.id,
            "source": self.source,
            "published": self.published,
            "ours": None,
            "spread": None,
            "interval_90": None,
            "low": self.low,
            "high": self.high,
            "ok": None,
        }
        if found.skipped is not None:
            return result | {"skipped": found.skipped}
        ours = _mean(found.values)
        ok = (self.low is None or ours >= self.low) and (self.high is None or ours <= self.high)
        spread, interval = [min(found.values), max(found.values)], interval_90(found.values)
        result |= {"ours": ours, "spread": spread, "interval_90": interval, "ok": ok}
        if found.readings:
            result["readings"] = {text: _mean(values) for text, values in found.readings.items()}
        return result

    def describe(self) -> dict[str, Any]:
        """The claim without its measurement; JSON-ready."""
        return {
            "id": self.id,
            "source": self.source,
            "published": self.published,
            "how": self.how,
            "low": self.low,
            "high": self.high,
        }


def claim(
    id: str,  # noqa: A002 (the word of the command's output)
    *,
    source: str,
    published: float | str,
    how: str,
    low: float | None = None,
    high: float | None = None,
) -> Callable[[Callable[[Trial], Measured]], Callable[[Trial], Measured]]:
    """Registers a function as the measurement of a claim of the paper that ``id`` begins with."""
    if low is None and high is None:
        raise ValueError(f"claim {id} accepts everything")

    def register(measure: Callable[[Trial], Measured]) -> Callable[[Trial], Measured]:
        CLAIMS.setdefault(id.partition(".")[0], []).append(Claim(id, source, published, how, low, high, measure))
        return measure

    return register


def papers() -> tuple[str, ...]:
    """Short names of the papers with claims.

    >>> papers()
    ('fas', 'aurora', 'mirror', 'mavstream', 'rtstream')
    """
    return tuple(PAPERS)


def claims(paper: str) -> list[Claim]:
    """The claims of a paper, in order.

    >>> claims("fas")[0].source
    'FAS §7.1, Fig. 3'
    >>> claims("faz")
    Traceback (most recent call last):
    freshet.model.errors.UserError: there are no claims of 'faz' (there are some of: fas, aurora, mirror, ...)
    """
    if paper not in PAPERS:
        raise UserError(f"there are no claims of {paper!r} (there are some of: {', '.join(PAPERS)})")
    import_module(f"freshet.reproduce.{paper}")
    return CLAIMS[paper]


def run(
    paper: str,
    *,
    quick: bool = True,
    plots_dir: Path | None = None,
    seeds: int | None = None,
    jobs: int = 1,
    ran: Callable[[], None] | None = None,
    began: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measures all claims of a paper.

    Args:
        paper: Short name.
        quick: Scaled-down workloads, in minutes; otherwise the sizes of the paper.
        plots_dir: Where to put PNGs that mirror the paper's figures; None: nowhere.
        seeds: Number of seeds.
        jobs: Number of processes to use.
        ran: Called after each simulation.
        began: Called with a text when a claim or the plots begin.

    Returns:
        ``{"paper", "mode", "seeds", "runs", "claims": [...]}``. A claim is ``{"id", "source", "published", "ours",
        "spread", "interval_90", "low", "high", "ok"}``. Claims that depend on readings have ``readings``; claims that
        could not be measured have ``ok`` null and ``skipped``.
    """
    every = claims(paper)
    trial = Trial(quick=quick, seeds=seeds or (None if quick else FULL_SEEDS.get(paper)), jobs=jobs, ran=ran)
    tell = began or (lambda text: None)
    results = []
    for each in every:
        tell(each.id)
        results.append(each.check(trial))
    if plots_dir is not None:
        tell("plots")
        plots_dir.mkdir(parents=True, exist_ok=True)
        import_module(f"freshet.reproduce.{paper}.plots").plot(trial, plots_dir)
    return {
        "paper": paper,
        "mode": "quick" if quick else "full",
        "seeds": len(trial.seeds),
        "runs": trial.runs,
        "claims": results,
    }


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
