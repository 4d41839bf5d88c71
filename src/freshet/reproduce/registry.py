"""The registry of claims: what was published, how we measure it, and in which band we accept it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal

from freshet.model import UserError
from freshet.reproduce.interval import interval_90
from freshet.reproduce.kept import KeptRuns
from freshet.reproduce.trial import Trial

PAPERS: Final = {
    "fas": "Tuning QoD in stream processing engines: freshness-aware scheduling (FAS)",
    "aurora": "Resource scheduling for data streams: Aurora's run time and QoS-aware schedulers (CAR ch. 3-4)",
    "mirror": "Resource scheduling for data refreshing: perceived freshness of mirrors (CAR ch. 2)",
    "mavstream": "Runtime optimization of continuous queries: MavStream's run-time optimizer (MAV)",
    "rtstream": "Prediction-based QoS management for real-time data streams: RTStream (RT)",
    "wojoin": "Query processing in data stream management systems: window-oblivious joins (WU ch. 3, Table 5.4)",
    "tuples": "Query processing in data stream management systems: tuple-based scheduling (WU ch. 4)",
}
"""Papers by short name. Each has a package or a module of that name here; importing it registers its claims."""

FULL_SEEDS: Final = {"rtstream": 10}
"""Number of seeds in full mode, of papers that name one."""
CLAIMS: dict[str, list[Claim]] = {}
ClaimKind = Literal["claim", "check"]
"""A claim says something about the world and could fail. A check is an identity, or the figure by which a constant was
set: it says that the machinery is right, and is not counted among the claims."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a claim's function found.

    Args:
        values: One value for each seed.
        readings: The same with other readings of what the paper leaves open, one value per seed each, by a text that
            says which.
        skipped: Why nothing could be measured, if so.
        grid: By how much the value changes if it is read off one step further along a grid (of rates, of sizes).
    """

    values: Sequence[float]
    readings: Mapping[str, Sequence[float]] = field(default_factory=dict)
    skipped: str | None = None
    grid: float | None = None


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
        kind: Whether it is counted as a claim.
        reason: Why it does not come out here, if that is known.
        neutral: The value at which there would be no effect at all, of a published figure that has one. The result then
            says which share of the published effect we measure: a band of directions says nothing of it.
    """

    id: str
    source: str
    published: float | str
    how: str
    low: float | None
    high: float | None
    measure: Callable[[Trial], Measured]
    kind: ClaimKind = "claim"
    reason: str | None = None
    neutral: float | None = None

    def check(self, trial: Trial) -> dict[str, Any]:
        """Measures the claim; JSON-ready. ``ours``, the mean over the seeds, decides; ``spread`` is their range, and
        ``interval_90`` the 90 % confidence interval of the mean.

        ``hangs_on_a_step`` says that one step of the grid from which it was read would change the verdict,
        ``of_published`` which share of the published effect ours is.
        """
        found = self.measure(trial)
        result: dict[str, Any] = {
            "id": self.id,
            "kind": self.kind,
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
        ok = self.accepts(ours)
        spread, interval = [min(found.values), max(found.values)], interval_90(found.values)
        result |= {"ours": ours, "spread": spread, "interval_90": interval, "ok": ok}
        if not ok and self.reason is not None:
            result["reason"] = self.reason
        if (share := self.of_published(ours)) is not None:
            result["of_published"] = share
        if found.grid is not None:
            beside = {self.accepts(ours - found.grid), self.accepts(ours + found.grid)}
            result |= {"grid": found.grid, "hangs_on_a_step": beside != {ok}}
        if found.readings:
            result["readings"] = {text: _mean(values) for text, values in found.readings.items()}
        return result

    def accepts(self, value: float) -> bool:
        """Whether a value lies in the band."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def of_published(self, value: float) -> float | None:
        """The share of the published effect that a value is; None if none was published as a figure.

        >>> half = Claim("x.y", "X §1", 1.2, "a ratio", 1.0, None, lambda trial: Measured([]), neutral=1.0)
        >>> round(half.of_published(1.1), 6)
        0.5
        """
        if self.neutral is None or isinstance(self.published, str):
            return None
        return (value - self.neutral) / (self.published - self.neutral)

    def describe(self) -> dict[str, Any]:
        """The claim without its measurement; JSON-ready."""
        return {
            "id": self.id,
            "kind": self.kind,
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
    kind: ClaimKind = "claim",
    reason: str | None = None,
    neutral: float | None = None,
) -> Callable[[Callable[[Trial], Measured]], Callable[[Trial], Measured]]:
    """Registers a function as the measurement of a claim of the paper that ``id`` begins with."""
    if low is None and high is None:
        raise ValueError(f"claim {id} accepts everything")
    if neutral is not None and (isinstance(published, str) or published == neutral):
        raise ValueError(f"claim {id} has no published effect")

    def register(measure: Callable[[Trial], Measured]) -> Callable[[Trial], Measured]:
        made = Claim(id, source, published, how, low, high, measure, kind, reason, neutral)
        CLAIMS.setdefault(id.partition(".")[0], []).append(made)
        return measure

    return register


def papers() -> tuple[str, ...]:
    """Short names of the papers with claims.

    >>> papers()
    ('fas', 'aurora', 'mirror', 'mavstream', 'rtstream', 'wojoin', 'tuples')
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


def chosen(paper: str, name: str | None) -> list[Claim]:
    """The claims of a paper, or those of a figure, or the one that has a name; the paper's name in front may be left
    out.

    >>> [each.id for each in chosen("fas", "fig3.gain-at-0.1")]
    ['fas.fig3.gain-at-0.1']
    >>> {each.source for each in chosen("fas", "fig3")}
    {'FAS §7.1, Fig. 3'}
    >>> chosen("fas", "fig3.gain")
    Traceback (most recent call last):
    freshet.model.errors.UserError: fas has no claim 'fig3.gain' (did you mean fas.fig3.gain-grows?)
    """
    every = claims(paper)
    if name is None:
        return every
    full = name if name.startswith(f"{paper}.") else f"{paper}.{name}"
    found = [each for each in every if each.id == full or each.id.startswith(f"{full}.")]
    if not found:
        near = get_close_matches(full, [each.id for each in every], n=1)
        hint = f"did you mean {near[0]}?" if near else f"`freshet reproduce {paper} --list` names them"
        raise UserError(f"{paper} has no claim {name!r} ({hint})")
    return found


def split_name(paper: str, name: str | None) -> tuple[str, str | None]:
    """The paper and the name of a claim, also of one text with both, as tables print it.

    >>> split_name("aurora.table4.1.slacks", None), split_name("fas", "fig3"), split_name("fas", None)
    (('aurora', 'table4.1.slacks'), ('fas', 'fig3'), ('fas', None))
    """
    head, dot, rest = paper.partition(".")
    return (head, rest) if dot and name is None else (paper, name)


def run(
    paper: str,
    name: str | None = None,
    *,
    quick: bool = True,
    plots_dir: Path | None = None,
    seeds: int | None = None,
    jobs: int = 1,
    keep: Path | None = None,
    ran: Callable[[], None] | None = None,
    began: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measures the claims of a paper.

    Args:
        paper: Short name.
        name: The only claim to measure, or the figure or table whose claims are; None: all.
        quick: Scaled-down workloads, in minutes; otherwise the sizes of the paper.
        plots_dir: Where to put PNGs that mirror the paper's figures; None: nowhere.
        seeds: Number of seeds.
        jobs: Number of processes to use.
        keep: Folder of simulations that were made before by the same code, and of those made now; None: none.
        ran: Called after each simulation.
        began: Called with a text when a claim or the plots begin.

    Returns:
        ``{"paper", "mode", "seeds", "runs", "held", "failed", "claims": [...]}``, where ``held`` and ``failed`` count
        claims, not checks. A claim is ``{"id", "kind", "source", "published", "ours", "spread", "interval_90",
        "low", "high", "ok"}``. Claims that depend on readings have ``readings``, claims that fail for a known reason
        have ``reason``, claims that are read off a grid have ``grid`` and ``hangs_on_a_step``, claims of a published
        effect have ``of_published``; claims that could not be measured have ``ok`` null and ``skipped``.
    """
    every = chosen(paper, name)
    kept = KeptRuns(keep) if keep is not None else None
    count = seeds or (None if quick else FULL_SEEDS.get(paper))
    tell = began or (lambda text: None)
    results = []
    with Trial(quick=quick, seeds=count, jobs=jobs, ran=ran, kept=kept) as trial:
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
        "held": _count(results, ok=True),
        "failed": _count(results, ok=False),
        "claims": results,
    }


def _count(results: Sequence[dict[str, Any]], *, ok: bool) -> int:
    return sum(each["ok"] is ok for each in results if each["kind"] == "claim")


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
