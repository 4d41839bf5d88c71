"""``freshet policies``."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from freshet.policies.arguments import Argument

EXAMPLES: Final = """\b
Examples:
  freshet run app.toml --policy "rr(1000)"
  freshet run app.toml --policy fas-mcq+set
"""
SETS: Final = (
    "Like {name}, but runs a set of queries in each step: as many, in its order, as pay for the step's overhead."
)


def policies() -> None:
    """List the scheduling policies.

    Choose one in the file ([app] policy) or on the command line. A policy may take arguments, and each may be left
    out: "rr(1000)" takes at most 1,000 tuples of a queue in turn, "fas-mcq(0.5)+set" runs sets of queries with a beta
    of one half, "fas-mcq(rows=1000)" names its argument. docs/freshness.md, docs/aurora.md and docs/optimizer.md say
    when to choose which.
    """
    from freshet.policies import forms
    from freshet.policies.arguments import arguments_of, call_text
    from freshet.policies.registry import POLICIES

    known: dict[str, Argument] = {}
    auto: dict[str, list[str]] = {}
    rows, notes = [], []
    for text, make in forms():
        name, _, ending = text.partition("+")
        arguments = arguments_of(make)
        known |= {argument.name: argument for argument in arguments}
        for argument in arguments:
            if argument.auto and not ending:
                auto.setdefault(argument.name, []).append(name)
        summary = " ".join((inspect.getdoc(make) or "").split("\n\n")[0].split())
        if (package := POLICIES.package(name)) is not None:
            summary = f"{summary} (of {package})"
            if not ending and (own := getattr(make, "name", name)) != name:
                notes.append(f"{name} of {package} calls itself {own}, and reports show that: let both names be one")
        shown = call_text(name, arguments) + (f"+{ending}" if ending else "")
        rows.append((shown, SETS.format(name=name) if ending else summary))
    wide = max(len(shown) for shown, _ in rows)
    for shown, summary in rows:
        print(f"{shown:<{wide}}  {summary}")
    for problem in [*POLICIES.problems(), *notes]:
        print(f"Note: {problem}")
    print("\nArguments may be left out. Those without a value here are then unlimited:")
    for argument in known.values():
        also = f", or auto ({', '.join(auto[argument.name])})" if argument.name in auto else ""
        print(f"  {argument.name:<{wide - 2}}  {_explained(replace(argument, auto=False))}{also}")


def _explained(argument: Argument) -> str:
    return f"{argument.meaning}; {argument.range}" if argument.meaning else argument.range
