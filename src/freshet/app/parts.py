"""What a run is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from freshet.app.installing import Installer
from freshet.app.loop import Loop
from freshet.app.outlets import Outlets
from freshet.app.tables import Tables
from freshet.engine import Engine, LogQueues
from freshet.log import Log
from freshet.sources import Feeder, PushSource

if TYPE_CHECKING:
    from freshet.spark.embedded import SparkSession


@dataclass(slots=True)
class Parts:
    """The parts of a run, connected; :mod:`freshet.app.wiring` puts them together."""

    log: Log
    queues: LogQueues
    session: SparkSession
    engine: Engine
    loop: Loop
    installer: Installer
    outlets: Outlets
    tables: Tables
    policy: str
    master: str
    close: Callable[[], None]
    """Closes everything, in the reverse of the order in which it was opened."""
    feeders: dict[str, Feeder] = field(default_factory=dict)
    pushes: dict[str, PushSource] = field(default_factory=dict)
