"""The optimizer of a run: there as soon as a query expects something or has a strategy, and not before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from freshet.app.declared.optimizing import check_ranked, check_strategy
from freshet.app.declared.spec import QuerySpec
from freshet.app.remembered.ranks import MeasuredRanks
from freshet.app.remembered.strategies import StateFolder
from freshet.engine import Engine, Optimizer
from freshet.log import Log
from freshet.model import Promises
from freshet.quality.optimizer import SHIPPED, DecisionTable

if TYPE_CHECKING:
    from freshet.app.app import App


class Optimizing:
    """Brings the optimizer into a run when the first query needs it. Use it on the engine's thread only.

    Args:
        app: The application.
        engine: That of the run.
        log: Keeps strategies.
        state: The folder that keeps looks.
    """

    def __init__(self, app: App, engine: Engine, log: Log, state: Path) -> None:
        self._settings, self._engine, self._log, self._state = app.settings, engine, log, state
        self._table = table_of(app)

    def add(self, spec: QuerySpec) -> None:
        """A query is about to be added."""
        optimizer = self._needed(spec.promises, spec.strategy is not None)
        if optimizer is not None:
            optimizer.pin(spec.name, spec.strategy)

    def expect(self, name: str, promises: Promises) -> None:
        """The promises of a query are about to change."""
        check_ranked(name, promises, self._settings.ranks)
        self._needed(promises)

    def pin(self, name: str, strategy: str | None, promises: Promises) -> None:
        """A query that runs has a strategy of its own from now on; None: it has none any more."""
        if strategy is not None:
            check_strategy(name, strategy)
        optimizer = self._needed(promises, strategy is not None)
        if optimizer is not None:
            optimizer.set_strategy(name, strategy)

    def _needed(self, promises: Promises, pinned: bool = False) -> Optimizer | None:
        watched = bool(promises.expected) and self._settings.optimizer != "off"
        if self._engine.optimizer is None and (watched or pinned):
            settings = self._settings
            made = Optimizer(
                mode=settings.optimizer,
                settings=settings.looks,
                table=self._table,
                memory=StateFolder(self._log, self._state),
                predict=settings.ranks == "predict",
            )
            self._engine.use(made)
        return self._engine.optimizer


def table_of(app: App) -> Callable[[str], DecisionTable]:
    """The decision table of each query.

    Raises:
        UserError: It should be the measured one, and nothing was measured.
    """
    ranks = app.settings.ranks
    if isinstance(ranks, DecisionTable):
        return lambda query: ranks
    if ranks != "measured" or app.settings.optimizer == "off":
        return lambda query: SHIPPED
    # A query that was not there when strategies were measured goes by the shipped table.
    tables = MeasuredRanks.read(app.state).tables()
    return lambda query: tables.get(query, SHIPPED)
