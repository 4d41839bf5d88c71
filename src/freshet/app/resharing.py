"""Sharing while an application runs: after queries came or went."""

from __future__ import annotations

from typing import Final

from freshet.app.installing import Installer
from freshet.engine import Engine
from freshet.engine.events import Added, Committed, Dropped, Event

_FIRST_LOOK: Final = 1.0
"""Seconds after which it is looked at first: there should be something measured. Then ever more seldom."""
_LOOKS: Final = 6


class Resharing:
    """An observer that has running queries share what is worth it, when queries have come or gone.

    They change only where they stand at the same tuple with nothing between their operators. Whether they do is looked
    at a few times, ever more seldom; to change, the engine comes to rest for a moment.

    Args:
        engine: Runs the queries.
        installer: Knows what they share.
    """

    def __init__(self, engine: Engine, installer: Installer) -> None:
        self._engine, self._installer = engine, installer
        self._looks = _LOOKS
        self._next = 0.0

    def tell(self, event: Event) -> None:
        """Something happened."""
        if isinstance(event, Added | Dropped):
            self._looks, self._next = 0, event.now + _FIRST_LOOK
        elif isinstance(event, Committed) and self._looks < _LOOKS and event.now >= self._next:
            self._next = event.now + _FIRST_LOOK * 2**self._looks
            self._looks += 1
            self._engine.call(self._look)

    def _look(self) -> None:
        if self._installer.rearranged() is not None:
            self._engine.at_rest(self._installer.rearrange)
