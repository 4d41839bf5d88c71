"""What the looks at a query add up to."""

from __future__ import annotations

from typing import Final, Literal

from freshet.model import MEASURES
from freshet.quality.optimizer.look import Look, MeasureLook
from freshet.quality.snapshots import MeasureSnapshot, PromiseSnapshot

_NEAR: Final = 0.9
"""A measure is at risk if it has come so near to what is expected of it."""

Standing = Literal["kept", "at risk", "broken"]


def standing(look: Look) -> Standing:
    """How the promise to a query stands after a look: whether everything is as expected now, and whether that may end
    soon. A figure is at risk if less than a tenth is left, or if only the look-ahead finds it violated.

    >>> def seen(observed: float, ahead: float = 2.0) -> Look:
    ...     late = MeasureLook("latency", "must", 1.0, observed, 2.0, ahead, violated=observed > ahead)
    ...     return Look(7.0, 3.0, "segment", "segment", "satisfied", (late,))
    >>> standing(seen(1.0)), standing(seen(1.9)), standing(seen(1.5, ahead=1.0)), standing(seen(2.5))
    ('kept', 'at risk', 'at risk', 'broken')
    """
    if broken(look):
        return "broken"
    return "at risk" if any(each.violated or _is_near(each) for each in look.measures) else "kept"


def broken(look: Look) -> list[str]:
    """The measures that are not as expected now."""
    return [each.measure for each in look.measures if not _meets(each)]


def _meets(each: MeasureLook) -> bool:
    return MEASURES[each.measure].meets(each.observed, each.expected)


def _is_near(each: MeasureLook) -> bool:
    return MEASURES[each.measure].excess(each.observed, each.expected) > _NEAR


class Tally:
    """Sums up the looks at a query in a run.

    >>> late = MeasureLook("latency", "must", 1.0, observed=3.0, expected=2.0, ahead=2.0, violated=True, weight=1.0)
    >>> tally = Tally()
    >>> tally.add(Look(7.0, 3.0, "segment", "pcs", "best", (late,)), seconds=3.0)
    >>> told = tally.snapshot("pcs", pinned=False)
    >>> told["standing"], told["switches"], told["measures"]["latency"]["violated_s"]
    ('broken', 1, 3.0)
    """

    __slots__ = ("_latest", "_violated", "looks", "switches")

    def __init__(self) -> None:
        self.looks = self.switches = 0
        self._latest: Look | None = None
        self._violated: dict[str, float] = {}

    def add(self, look: Look, seconds: float) -> None:
        """Takes a look at an interval of this many seconds."""
        self._latest = look
        self.looks += 1
        self.switches += look.switches and look.applied
        for each in look.measures:
            if each.missed:
                self._violated[each.measure] = self._violated.get(each.measure, 0.0) + seconds

    def snapshot(self, strategy: str | None, pinned: bool) -> PromiseSnapshot:
        """The sums as plain values, for reports."""
        look = self._latest
        return {
            "standing": "kept" if look is None else standing(look),
            "broken": [] if look is None else broken(look),
            "strategy": strategy,
            "pinned": pinned,
            "switches": self.switches,
            "looks": self.looks,
            "measures": {} if look is None else {each.measure: self._measure(each) for each in look.measures},
        }

    def _measure(self, each: MeasureLook) -> MeasureSnapshot:
        return {
            "priority": each.priority,
            "expected": each.expected,
            "observed": each.observed,
            "violated": not _meets(each),
            "violated_s": self._violated.get(each.measure, 0.0),
        }
