"""The run-time optimizer (MAV §4): what it watches, how it chooses a strategy for a query, and what it remembers.

Nothing here has a clock: whoever looks says when. The same code decides in simulated time and on Spark.
"""

from freshet.model.promises.decision_table import ROUND_ROBIN, SHIPPED, DecisionTable
from freshet.model.promises.look_settings import LookSettings
from freshet.quality.optimizer.decision_maker import DecisionMaker
from freshet.quality.optimizer.interval_meter import IntervalFigures, IntervalMeter, IntervalTotals
from freshet.quality.optimizer.look import Look, LookRule, MeasureLook
from freshet.quality.optimizer.monitor import SystemMonitor
from freshet.quality.optimizer.predictor import Predictor
from freshet.quality.optimizer.strategy_state import StrategyState, StrategySwitch
from freshet.quality.optimizer.tally import Tally

__all__ = [
    "ROUND_ROBIN",
    "SHIPPED",
    "DecisionMaker",
    "DecisionTable",
    "IntervalFigures",
    "IntervalMeter",
    "IntervalTotals",
    "Look",
    "LookRule",
    "LookSettings",
    "MeasureLook",
    "Predictor",
    "StrategyState",
    "StrategySwitch",
    "SystemMonitor",
    "Tally",
]
