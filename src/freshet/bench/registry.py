"""The benchmarks by name. To add one: write ``freshet/bench/NAME.py`` with a function decorated by :func:`bench`,
and put its module into :data:`MODULES`.

The function gets a :class:`~freshet.bench.stage.Stage` and options that typer understands, each with a default and a
help text; it returns a :class:`~freshet.bench.result.Result`. ``--json``, the conditions of the machine, the folder
and the table for people are common to all. :mod:`freshet.bench.rig` has an engine, a side of Structured Streaming and a
process meter. Import Spark inside the function: ``--help`` should come at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Concatenate, Final, ParamSpec

from freshet.bench.result import Result
from freshet.bench.stage import Stage

P = ParamSpec("P")

MODULES: Final = [
    "crash", "overhead", "throughput", "backlog", "soak", "decide", "set_step", "freshness", "qos", "windows",
    "many", "traversals", "mirror", "state", "constants", "optimizer", "periodic", "wojoin",
]  # fmt: skip
"""Modules of ``freshet.bench`` with benchmarks, in the order in which ``--help`` shows them."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A benchmark: what it measures, how long it takes, and the function that does it."""

    name: str
    summary: str
    takes: str
    run: Callable[..., Result]


BENCHES: Final[dict[str, Bench]] = {}


def bench(
    summary: str, *, takes: str, name: str | None = None
) -> Callable[[Callable[Concatenate[Stage, P], Result]], Callable[Concatenate[Stage, P], Result]]:
    """Registers a benchmark under the name of its function (``set_step`` becomes ``set-step``).

    Args:
        summary: What it measures, in a sentence.
        takes: How long it takes with its defaults, in words.
        name: A name instead of the function's.
    """

    def register(run: Callable[Concatenate[Stage, P], Result]) -> Callable[Concatenate[Stage, P], Result]:
        own = name or run.__name__.replace("_", "-")
        BENCHES[own] = Bench(own, summary, takes, run)
        return run

    return register


def benches() -> dict[str, Bench]:
    """All benchmarks by name.

    >>> [name for name in benches() if name in ("crash", "overhead", "throughput", "soak")]
    ['crash', 'overhead', 'throughput', 'soak']
    """
    for module in MODULES:
        import_module(f"freshet.bench.{module}")
    return dict(BENCHES)
