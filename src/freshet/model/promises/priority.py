"""Priority classes: how much an expectation counts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from freshet.model.errors import UserError

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A priority class of expectations (MAV §4.3). Its weight is used as it is given.

    Two names mean more than their weight: rows may be thinned for ``must`` alone, and for ``dont-care`` any strategy
    that is better will do. Every other class behaves like ``best-effort``.

    >>> MUST.weight, MUST.must, BEST_EFFORT.must, DONT_CARE.any_better
    (1.0, True, False, True)
    """

    name: str
    weight: float

    @property
    def must(self) -> bool:
        """Whether what no strategy can satisfy may be satisfied by thinning."""
        return self.name == "must"

    @property
    def any_better(self) -> bool:
        """Whether any better strategy will do, not only the best one."""
        return self.name == "dont-care"


MUST: Final = PriorityClass("must", 1.0)
BEST_EFFORT: Final = PriorityClass("best-effort", 0.5)
DONT_CARE: Final = PriorityClass("dont-care", 0.01)
CLASSES: Final = {each.name: each for each in (MUST, BEST_EFFORT, DONT_CARE)}
"""The classes that there always are, by name."""


def priority_classes(own: Mapping[str, Any]) -> dict[str, PriorityClass]:
    """All classes of an application, from the weights of those that it defines; it may give others to the usual three.

    >>> sorted((each.weight, name) for name, each in priority_classes({"gold": 0.8, "must": 2}).items())
    [(0.01, 'dont-care'), (0.5, 'best-effort'), (0.8, 'gold'), (2.0, 'must')]
    """
    return CLASSES | {name: own_class(name, weight) for name, weight in own.items()}


def own_class(name: Any, weight: Any) -> PriorityClass:
    """A class that a user defines.

    >>> own_class("gold", 0)
    Traceback (most recent call last):
    freshet.model.errors.UserError: class gold: its weight must be a number above 0, not 0
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UserError(f"{name!r} cannot name a class: use letters, digits, - and _, beginning with a letter")
    number = isinstance(weight, int | float) and not isinstance(weight, bool) and math.isfinite(weight)
    if not number or weight <= 0:
        raise UserError(f"class {name}: its weight must be a number above 0, not {weight!r}")
    return PriorityClass(name, float(weight))


def class_of(given: Any, known: Mapping[str, PriorityClass]) -> PriorityClass:
    """The class that a user means: the name of a known one, or a new one with its weight.

    >>> class_of("must", CLASSES), class_of({"gold": 0.8}, CLASSES)
    (PriorityClass(name='must', weight=1.0), PriorityClass(name='gold', weight=0.8))
    >>> class_of("gold", CLASSES)
    Traceback (most recent call last):
    freshet.model.errors.UserError: there is no class 'gold' (there are: must, best-effort, dont-care); define it ...
    """
    if isinstance(given, PriorityClass):
        return given
    if isinstance(given, Mapping) and len(given) == 1:
        [(name, weight)] = given.items()
        return own_class(name, weight)
    if not isinstance(given, str):
        raise UserError(f'a class is a name such as "must", or a name with its weight, {{gold = 0.8}}, not {given!r}')
    if given not in known:
        raise UserError(
            f"there is no class {given!r} (there are: {', '.join(known)}); "
            f"define it with its weight: class = {{{given} = 0.8}}"
        )
    return known[given]
