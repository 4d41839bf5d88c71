"""Policies by name, as users write them: ``everything``, ``fcfs``, ``rr(100)``, ``fas-mcq(0.25)``, ``rb-mcq+set``."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from typing import Final

from freshet.model import UserError
from freshet.model.plugins import Registry
from freshet.policies.arguments import arguments_of, call_text, parse_arguments
from freshet.policies.base import Policy
from freshet.policies.ratio.base import RatioPolicy
from freshet.policies.ratio.set_step import SetStep

_MODULES: Final = (
    "everything",
    "fcfs",
    "round_robin",
    "ratio.rb_mcq",
    "ratio.fas_mcq",
    "aurora.fixed_priority",
    "aurora.slope_slack",
    "aurora.bucketing",
    "aurora.two_level",
    "aurora.superbox_priority",
    "aurora.spanner",
    "mavstream.wrr",
    "mavstream.pcs",
    "mavstream.segment",
    "mavstream.simplified_segment",
    "share_of_time",
)
"""Modules with policies, in the order of their listing. Each names its own in ``POLICIES``."""
POLICIES: Final = Registry[Callable[..., Policy]](
    "freshet.policies",
    {policy.name: policy for module in _MODULES for policy in import_module(f"freshet.policies.{module}").POLICIES},
    lambda made: callable(made) and (not isinstance(made, type) or issubclass(made, Policy)),
    "a subclass of freshet.policies.Policy",
)
"""The class of each policy by its name; other packages add theirs as entry points of ``freshet.policies``."""
_CALL: Final = re.compile(r"\s*([a-z][a-z0-9-]*)\s*(?:\(\s*([^()]*?)\s*\))?\s*(\+\s*set)?\s*")


def names() -> tuple[str, ...]:
    """The names of all policies.

    >>> names()[:5]
    ('everything', 'fcfs', 'rr', 'rb-mcq', 'fas-mcq')
    """
    return tuple(POLICIES.names())


def create(text: str) -> Policy:
    """The policy that a text names, with its arguments if it takes any; ``+set`` lets a ratio policy run sets.

    >>> create("rr(100)").rows, create("fas-mcq(0.25)").beta, create("fas-mcq(rows=100)").rows
    (100, 0.25, 100)
    >>> create("slope-slack-push(20)").size
    20
    >>> type(create("fas-mcq+set").steps).__name__
    'SetStep'
    >>> create("lifo")
    Traceback (most recent call last):
    freshet.model.errors.UserError: there is no policy 'lifo' (there are: everything, fcfs, rr, rb-mcq, ...)
    """
    match = _CALL.fullmatch(text)
    make = POLICIES[match.group(1)] if match and match.group(1) in POLICIES else None
    if match is None or make is None:
        word = re.split(r"[\s(+]", text.strip().lower(), maxsplit=1)[0]
        if word in POLICIES and match is None:
            raise UserError(f"policy {text!r}: it is written {call_text(word, arguments_of(POLICIES[word]))}")
        close = get_close_matches(word, names(), n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UserError(f"there is no policy {text!r} (there are: {', '.join(text for text, _ in forms())}){hint}")
    texts = [part.strip() for part in match.group(2).split(",")] if match.group(2) else []
    policy = make(**parse_arguments(match.group(1), make, texts))
    return _with_sets(policy, text) if match.group(3) else policy


def _with_sets(policy: Policy, text: str) -> Policy:
    if not isinstance(policy, RatioPolicy):
        ratio = ", ".join(name for name, make in POLICIES.items() if _ranks(make))
        raise UserError(f"policy {text!r}: only policies that rank by a ratio can run sets of queries ({ratio})")
    policy.steps = SetStep()
    return policy


def _ranks(make: Callable[..., Policy]) -> bool:
    return isinstance(make, type) and issubclass(make, RatioPolicy)


def forms() -> tuple[tuple[str, Callable[..., Policy]], ...]:
    """Every spelling of every policy, with its class: the name, and the name with ``+set`` if it can run sets.

    >>> [text for text, _ in forms()][3:7]
    ['rb-mcq', 'rb-mcq+set', 'fas-mcq', 'fas-mcq+set']
    """
    for name in names():
        with suppress(UserError):  # the package is broken; create() says why
            _ = POLICIES[name]
    return tuple(
        (f"{name}{ending}", make)
        for name, make in POLICIES.items()
        for ending in (("", "+set") if _ranks(make) else ("",))
    )
