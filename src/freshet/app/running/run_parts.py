"""The parts of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from freshet.app.reports.feasible import Judgement
from freshet.app.running.installing import Installer
from freshet.app.running.loop import Loop
from freshet.app.running.observers import DecisionKeeper
from freshet.app.running.outlets import Outlets
from freshet.app.running.tables import TableFeeds
from freshet.engine import Engine, LogQueues
from freshet.engine.history_keeper import HistoryKeeper
from freshet.engine.optimizer.beta_keeper import BetaKeeper
from freshet.engine.optimizer.weight_keeper import WeightKeeper
from freshet.log import Log
from freshet.model import Query
from freshet.quality.snapshots import ResidentsSnapshot
from freshet.sources import Feeder
from freshet.sources.push import PushSource

if TYPE_CHECKING:
    from freshet.sources.mirror.source import MirrorSource
    from freshet.spark.session.embedded import SparkSession


@dataclass(slots=True)
class Parts:
    """The parts of a run, connected; :mod:`freshet.app.running.wiring` puts them together."""

    log: Log
    queues: LogQueues
    session: SparkSession
    engine: Engine
    loop: Loop
    installer: Installer
    outlets: Outlets
    tables: TableFeeds
    policy: str
    master: str
    decisions: DecisionKeeper
    history: HistoryKeeper
    weights: WeightKeeper
    residents: Callable[[], ResidentsSnapshot]
    balance: BetaKeeper | None = None
    judgement: Judgement = field(default_factory=Judgement)
    admit: Callable[[Query], None] = lambda query: None
    """Refuses a query that is to be added and does not fit."""
    feeders: dict[str, Feeder] = field(default_factory=dict)
    pushes: dict[str, PushSource] = field(default_factory=dict)
    mirrors: dict[str, MirrorSource] = field(default_factory=dict)
