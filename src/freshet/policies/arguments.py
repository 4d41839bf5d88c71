"""Arguments of policies as users write them: ``rr(100)``, ``fas-mcq(0.25)``."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from freshet.model import UserError

ArgumentValue = float | Literal["auto"]


@dataclass(frozen=True, slots=True)
class Argument:
    """A number that a policy takes.

    Args:
        name: As in the policy's class.
        meaning: What it does.
        low: The smallest value.
        high: The largest value; None: there is no limit.
        whole: Whether it is a whole number.
        default: Its value unless the user gives one; None: there is no limit.
        auto: Whether it may be the word "auto".
    """

    name: str
    meaning: str
    low: float
    high: float | None = None
    whole: bool = True
    default: float | None = None
    auto: bool = False

    @property
    def range(self) -> str:
        """The values that it takes.

        >>> Argument("beta", "", 0, 1, whole=False).range, Argument("rows", "", 1).range
        ('a number from 0 to 1', 'a whole number of at least 1')
        """
        kind = "a whole number" if self.whole else "a number"
        if self.low == -math.inf:
            return kind
        above = f"of at least {self.low:g}" if self.high is None else f"from {self.low:g} to {self.high:g}"
        return f"{kind} {above}" + (" or auto" if self.auto else "")

    def parse(self, text: str) -> ArgumentValue:
        """Its value; the ValueError for a wrong text says what would be right."""
        if self.auto and text == "auto":
            return "auto"
        try:
            value = int(text) if self.whole else float(text)
        except ValueError:
            raise ValueError(f"{self.name} must be {self.range}, not {text!r}") from None
        if not (math.isfinite(value) and self.low <= value <= (value if self.high is None else self.high)):
            raise ValueError(f"{self.name} must be {self.range}, not {text}")
        return value


_KNOWN: Final = {
    "rows": ("tuples to take from a queue at once", 1, None, True),
    "beta": ("1: best freshness, 0: best response time", 0, 1, False),
    "size": ("number of operators (in aaat and baat: superboxes) that one decision puts in order", 1, None, True),
    "boxes": ("best-ranked operators that a superbox is to span", 1, None, True),
    "partitions": ("parts into which slopes and slacks are divided", 1, None, True),
    "quantum": ("seconds of work that an operator gets in its turn", 1e-6, None, False),
    "leaf": ("quanta of an operator that reads a stream", 0.01, None, False),
    "join": ("quanta of a join", 0.01, None, False),
}


def arguments_of(make: Callable[..., Any]) -> tuple[Argument, ...]:
    """The numbers that a policy's class takes by position.

    >>> from freshet.policies import RoundRobin
    >>> [(argument.name, argument.range, argument.default) for argument in arguments_of(RoundRobin)]
    [('rows', 'a whole number of at least 1', None)]
    """
    found = []
    for parameter in inspect.signature(make).parameters.values():
        if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
            break
        meaning, low, high, whole = _KNOWN.get(parameter.name, ("", -math.inf, None, False))
        default = None if parameter.default is inspect.Parameter.empty else parameter.default
        auto = parameter.name in getattr(make, "auto", ())
        found.append(Argument(parameter.name, meaning, low, high, whole, default, auto))
    return tuple(found)


def call_text(name: str, arguments: tuple[Argument, ...]) -> str:
    """How a user writes a policy with its arguments and their defaults.

    >>> call_text("rr", (Argument("rows", "", 1),)), call_text("fas-mcq", (Argument("beta", "", 0, 1, False, 1.0),))
    ('rr(rows)', 'fas-mcq(beta=1)')
    """
    texts = [each.name if each.default is None else f"{each.name}={each.default:g}" for each in arguments]
    return f"{name}({', '.join(texts)})" if texts else name


def parse_arguments(name: str, make: Callable[..., Any], texts: list[str]) -> dict[str, ArgumentValue]:
    """Values of the arguments that a user wrote, by position or by name.

    Raises:
        UserError: There are too many, or one is unknown or out of its range.

    >>> from freshet.policies import FreshnessAware
    >>> parse_arguments("fas-mcq", FreshnessAware, ["0.25"]), parse_arguments("fas-mcq", FreshnessAware, ["rows=9"])
    ({'beta': 0.25}, {'rows': 9})
    """
    known = arguments_of(make)
    if len(texts) > len(known):
        takes = f"it is {call_text(name, known)}" if known else "it takes none"
        given = "1 argument is" if len(texts) == 1 else f"{len(texts)} arguments are"
        raise UserError(f"policy {name}: {given} too many: {takes}")
    found: dict[str, ArgumentValue] = {}
    by_name = {argument.name: argument for argument in known}
    for place, text in enumerate(texts):
        key, equals, value = (part.strip() for part in text.rpartition("="))
        argument = by_name.get(key) if equals else known[place]
        if argument is None or argument.name in found:
            raise UserError(f"policy {name}: {text!r} is one too many or not known: it is {call_text(name, known)}")
        try:
            found[argument.name] = argument.parse(value)
        except ValueError as error:
            raise UserError(f"policy {name}: {error}") from None
    return found
