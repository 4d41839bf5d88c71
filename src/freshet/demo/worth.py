"""The queries of the demo by worth: three groups, each with its name and colour."""

from __future__ import annotations

from typing import Final

from freshet import plots

ALERTS: Final = "alerts"
DASHBOARDS: Final = "dashboards"
ARCHIVES: Final = "archives"

_LEAST: Final = {ALERTS: 0.8, DASHBOARDS: 0.25, ARCHIVES: 0.0}
GROUPS: Final = tuple(_LEAST)
"""From the highest worth to the lowest."""
COLOURS: Final = {ALERTS: plots.COLOURS[1], DASHBOARDS: plots.COLOURS[0], ARCHIVES: plots.COLOURS[6]}


def group(weight: float) -> str:
    """The group of a query.

    >>> group(0.9), group(0.3), group(0.05)
    ('alerts', 'dashboards', 'archives')
    """
    return next(name for name, least in _LEAST.items() if weight >= least)
