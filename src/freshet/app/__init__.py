"""Applications: declared in Python or in a file, checked without Spark, run on it."""

from typing import TYPE_CHECKING, Any

from freshet.app.app import App
from freshet.app.declared.problems import InvalidApp, Problem

if TYPE_CHECKING:
    from freshet.app.running.run import Run

__all__ = ["App", "InvalidApp", "Problem", "Run"]


def __getattr__(name: str) -> Any:
    """Imports what runs an application only when it is needed: a mere check does not wait for it."""
    if name == "Run":
        from freshet.app.running.run import Run

        return Run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
