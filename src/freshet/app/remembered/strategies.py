"""What the optimizer remembers of queries, in the state folder."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Final

from freshet.app.remembered.looks import LookWriter
from freshet.app.remembered.restart import Known, recalled
from freshet.log import Log
from freshet.quality.optimizer import Look, StrategyState

_LOGGER: Final = logging.getLogger(__name__)


class StateFolder:
    """Keeps the strategy of each query with what the log knows of it, and the looks in files of their own. A query that
    changes, and starts anew, is a new one for the optimizer, too."""

    def __init__(self, log: Log, state: Path) -> None:
        self._log, self._looks = log, LookWriter(state)
        self._failed = False

    def started(self, query: str, now: float) -> float:
        known = recalled(self._log, query)
        return now if known is None or known.started is None else known.started

    def strategy(self, query: str) -> StrategyState | None:
        known = recalled(self._log, query)
        return None if known is None or known.strategy is None else StrategyState.read(known.strategy)

    def switched(self, query: str, state: StrategyState) -> None:
        record = self._log.queries().get(query)
        if record is not None:
            self._log.remember(query, replace(Known.of(record), strategy=state.record()).record())

    def looked(self, query: str, look: Look) -> None:
        """Keeps a look if the disk takes it; if not, the run goes on, and a warning says so once."""
        try:
            self._looks.add(query, look)
        except OSError as error:
            if not self._failed:
                self._failed = True
                _LOGGER.warning("looks of the optimizer cannot be kept: %s", error)
