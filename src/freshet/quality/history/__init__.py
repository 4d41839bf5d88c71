"""How a run went over time: samples of its meters, few enough to be kept whole, and what they say."""

from freshet.quality.history.history import History
from freshet.quality.history.record import HistoryRecord, QueryCourse, record_of
from freshet.quality.history.sample import MachineSample, QuerySample, RunSample
from freshet.quality.history.settled import settled

__all__ = [
    "History",
    "HistoryRecord",
    "MachineSample",
    "QueryCourse",
    "QuerySample",
    "RunSample",
    "record_of",
    "settled",
]
