"""Freshet: continuous queries on Spark, scheduled for freshness.

>>> import freshet
>>> app = freshet.App("monitor", state="state")
>>> app.stream("packets", "host string, size int")
>>> app.query("large", "SELECT host FROM packets WHERE size > 1000")
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

__version__ = "0.1.0"

_HOMES: Final = {
    "App": "freshet.app",
    "Backpressure": "freshet.sources",
    "FreshetError": "freshet.model",
    "InvalidApp": "freshet.app",
    "Retention": "freshet.log",
    "Run": "freshet.app",
    "UserError": "freshet.model",
    "function": "freshet.app.declared.functions",
    "operator": "freshet.app.declared.functions",
}

__all__ = ["App", "Backpressure", "FreshetError", "InvalidApp", "Retention", "Run", "UserError", "function", "operator"]


def __getattr__(name: str) -> Any:
    """Imports public names when they are first used: workers and the command line need few of them.

    Type checkers find them in ``__init__.pyi``.
    """
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, whether they were used already or not."""
    return sorted([*__all__, "__version__"])
