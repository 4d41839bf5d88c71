"""Promises: all that was promised to a query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from freshet.model.errors import UserError
from freshet.model.promises.curve import Curve
from freshet.model.promises.expectation import Expectations
from freshet.model.promises.quality_table import PROPORTIONAL, QualityTable

Late = Literal["finish", "abandon"]
"""What happens to instances of a periodic query whose deadline has passed."""
Missed = Literal["skip", "catch-up"]
"""What happens to releases of a periodic query at which the application did not run."""
_OVERLOAD: Final = ("defer", "thin")


def overload_of(given: Any) -> tuple[str, ...]:
    """What may happen to a query under overload, from what a user writes.

    >>> overload_of(["defer", "thin"])
    ('defer', 'thin')
    >>> overload_of(["skip"])
    Traceback (most recent call last):
    freshet.model.errors.UserError: overload has "skip", which this version does not run: use "defer" or "thin"
    >>> overload_of("thin")
    Traceback (most recent call last):
    freshet.model.errors.UserError: overload must be a list of "defer" and "thin", not 'thin'
    """
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise UserError(f'overload must be a list of "defer" and "thin", not {given!r}')
    if "skip" in given:
        raise UserError('overload has "skip", which this version does not run: use "defer" or "thin"')
    for word in given:
        if word not in _OVERLOAD:
            raise UserError(f'overload must be a list of "defer" and "thin", but has {word!r}')
    return tuple(dict.fromkeys(given))


@dataclass(frozen=True, slots=True)
class Promises:
    """What was promised to a query.

    Args:
        weight: Importance in (0, 1] (FAS §4.4).
        curve: What its answers are worth by their latency (CAR §4.2); None: the same at any latency.
        validity: Seconds for which a tuple is worth answering; None: for ever.
        period: Seconds between releases of a periodic query (RT §2.2).
        deadline: Seconds after its release by which an instance should be answered.
        expect: What its measures should be over its life (MAV §4.2); it never moves a due date.
        overload: What may happen to it under overload: ``defer`` lets tuples wait, ``thin`` leaves some of them out.
        value: SQL expression over the columns of an input: what a tuple is worth. The least go first.
        quality: What its answers are worth by the share of the tuples that is kept.
        late: What happens to an instance whose deadline has passed: it is answered all the same, or abandoned.
        missed: What happens to releases at which the application did not run: they are skipped, or caught up with.

    >>> Promises(weight=0.5).weight
    0.5
    """

    weight: float = 1.0
    curve: Curve | None = None
    validity: float | None = None
    period: float | None = None
    deadline: float | None = None
    expect: Expectations = field(default_factory=Expectations)
    overload: tuple[str, ...] = ("defer",)
    value: str | None = None
    quality: QualityTable = PROPORTIONAL
    late: Late = "finish"
    missed: Missed = "skip"

    def __post_init__(self) -> None:
        # Also refuses what is no number.
        if not 0.0 < self.weight <= 1.0:
            raise UserError(f"weight {self.weight} is outside (0, 1]")

    @property
    def expected(self) -> Expectations:
        """What is watched: its expectations. If there are some, but none of latency, the latency up to which its curve
        loses nothing is expected, too.

        >>> wish = Expectations.parse({"memory": "1 MB"})
        >>> [each.text() for each in Promises(curve=Curve.deadline(2.0), expect=wish).expected]
        ['latency 2 s (best-effort, weight 0.5)', 'memory 1 MB (best-effort, weight 0.5)']
        >>> bool(Promises(curve=Curve.deadline(2.0)).expected)
        False
        """
        promise = math.inf if self.curve is None else self.curve.promise
        return self.expect.or_latency(promise) if self.expect and 0.0 < promise < math.inf else self.expect

    @property
    def tolerated(self) -> float:
        """The latency in seconds that its answers may have; infinite: any. What is expected of latency counts, at the
        strictest over its life; else the latency up to which its curve loses nothing or, where it falls from the
        beginning, that at its last point. And no answer may be later than its validity or its deadline.

        >>> Promises(curve=Curve.deadline(2.0), validity=1.0).tolerated, Promises().tolerated
        (1.0, inf)
        >>> Promises(curve=Curve([(0, 1), (4, 0)])).tolerated
        4.0
        >>> Promises(curve=Curve.deadline(2.0), expect=Expectations.parse({"latency": [[0, 9], [60, 3]]})).tolerated
        3.0
        """
        expected, curve = self.expect.get("latency"), math.inf
        if expected is not None:
            curve = expected.strictest
        elif self.curve is not None:
            curve = self.curve.promise or self.curve.points[-1][0]
        return min(each for each in (curve, self.validity, self.deadline) if each is not None)


def shared(promises: Iterable[tuple[Promises, float]]) -> Promises:
    """What is promised to work that several queries share, from the promises of each query with the seconds that a
    tuple still takes in it behind the shared work.

    It has the greatest weight of them, the least validity and deadline, and the sum of their curves, each shifted
    by those seconds: the slope is what all of them lose per second while a tuple waits, and the next critical point is
    the nearest one of any of them. What is expected of the query with the greatest class is expected of it.

    >>> both = shared([(Promises(0.5, Curve.deadline(1.0)), 0.0), (Promises(0.25, Curve.deadline(3.0)), 1.0)])
    >>> both.weight, both.curve
    (0.5, Curve([(0.0, 2.0), (1.0, 2.0), (1.0, 1.0), (2.0, 1.0), (2.0, 0.0)]))
    """
    each = list(promises)
    curves = [(promise.curve, rest) for promise, rest in each if promise.curve is not None]
    return Promises(
        weight=max(promise.weight for promise, _ in each),
        curve=Curve.total(curves) if curves else None,
        validity=min((promise.validity for promise, _ in each if promise.validity is not None), default=None),
        deadline=min((promise.deadline for promise, _ in each if promise.deadline is not None), default=None),
        expect=max((promise.expect for promise, _ in each), key=lambda expect: expect.weight),
    )
