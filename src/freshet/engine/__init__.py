"""The engine: one loop that runs in two worlds, real time with Spark and simulated time."""

from freshet.engine.clock import Clock, RealClock, VirtualClock
from freshet.engine.engine import Engine, Undrained
from freshet.engine.events import Event, Observer
from freshet.engine.optimizer.optimizer import Optimizer
from freshet.engine.optimizer.strategy_memory import RunMemory, StrategyMemory
from freshet.engine.protocols import Executor, QueueLog
from freshet.engine.queues import LogQueues

__all__ = [
    "Clock",
    "Engine",
    "Event",
    "Executor",
    "LogQueues",
    "Observer",
    "Optimizer",
    "QueueLog",
    "RealClock",
    "RunMemory",
    "StrategyMemory",
    "Undrained",
    "VirtualClock",
]
