"""What operators cost, kept from one run to the next: it decides what queries share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from freshet.log.private import write_private
from freshet.policies.sharing import OperatorFigures

_FILE: Final = "costs.json"


def read_figures(state: Path) -> dict[str, OperatorFigures] | None:
    """What runs over a state folder have measured, by operator; None: nothing."""
    try:
        found = json.loads((state / _FILE).read_text(encoding="utf-8"))
        return {str(name): OperatorFigures(*map(float, figures)) for name, figures in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return None  # it is not synced: after a power cut nothing is known


def write_figures(state: Path, figures: Mapping[str, OperatorFigures] | None) -> None:
    """Keeps what was measured, by operator; None: nothing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_figures(Path(folder), {"q.filter_1": OperatorFigures(cost=2e-6, selectivity=0.5, rate=10.0)})
    ...     read_figures(Path(folder))
    {'q.filter_1': OperatorFigures(cost=2e-06, selectivity=0.5, rate=10.0)}
    """
    if figures:
        write_private(state / _FILE, json.dumps(figures))
