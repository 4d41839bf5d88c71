"""How good the answers are and what they cost: freshness, response time, statistics, meters.

Nothing here has a clock. Times are arguments, in seconds, so that the same code measures simulated and real runs.
"""

from freshet.quality.freshness import FreshnessMeter, mean_freshness, staleness_probability
from freshet.quality.histogram import Histogram
from freshet.quality.intervals import IntervalUnion
from freshet.quality.meters import Meters, StreamCounts
from freshet.quality.qos import Qos, QosMeter, overall
from freshet.quality.query_meter import QueryMeter
from freshet.quality.rate import RecentRate
from freshet.quality.response import ResponseMeter, ResponseTimes
from freshet.quality.share import DecisionMeter, WorkerMeter
from freshet.quality.smoothing import Smoothed
from freshet.quality.statistics import OperatorStatistics, OverheadStatistics
from freshet.quality.waiting import QueueLength, Remembered, Waiting

__all__ = [
    "DecisionMeter",
    "FreshnessMeter",
    "Histogram",
    "IntervalUnion",
    "Meters",
    "OperatorStatistics",
    "OverheadStatistics",
    "Qos",
    "QosMeter",
    "QueryMeter",
    "QueueLength",
    "RecentRate",
    "Remembered",
    "ResponseMeter",
    "ResponseTimes",
    "Smoothed",
    "StreamCounts",
    "Waiting",
    "WorkerMeter",
    "mean_freshness",
    "overall",
    "staleness_probability",
]
