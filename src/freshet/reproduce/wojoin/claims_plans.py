"""Claims of WU §3.6.1 on plans of several joins, and on ways to need less memory; and of Table 5.4."""

from __future__ import annotations

import numpy as np

from freshet.reproduce.registry import Measured, claim
from freshet.reproduce.trial import Trial
from freshet.reproduce.wojoin.claims import outcomes
from freshet.reproduce.wojoin.pipelines import PipelineOutcome, PipelineRun, last_join
from freshet.reproduce.wojoin.strategies import BufferForm, BufferStrategy, MeanRows, MemoryRun, memory, of_s3
from freshet.reproduce.wojoin.table54 import ReplayRun, saved

_NO_TRACE = "the trace is not there (shared/data)"


def joins(trial: Trial, query: int) -> list[PipelineOutcome]:
    """One for each seed."""
    return trial.map(last_join, [PipelineRun(2 if query == 2 else 3, seed) for seed in trial.seeds])


def _bound(trial: Trial, query: int) -> Measured:
    found = joins(trial, query)
    readings = {
        "Eq. 3.7 as published, with bounds of factors": [min(each.least_published) for each in found],
        "rows above the marks": [min(each.least_marks) for each in found],
    }
    return Measured([min(each.least) for each in found], readings)


@claim(
    "wojoin.fig3.8.bound",
    source="WU Fig. 3.8-3.9",
    published="predicted buffers of S7 and S8 suffice (Query 2)",
    how="least ratio of predicted to needed rows in the last join, by the corrected model with Eq. 3.10",
    low=1.0,
)
def same_column(trial: Trial) -> Measured:
    """Behind joins on the same column the bound holds."""
    return _bound(trial, 2)


@claim(
    "wojoin.fig3.10.bound",
    source="WU Fig. 3.10-3.11",
    published="predicted buffers of S7 and S8 suffice (Query 3)",
    how="the same where the last join is on another column, with Eq. 3.11 and the joined stream's dependent factor",
    low=1.0,
)
def other_column(trial: Trial) -> Measured:
    """Behind joins on another column the bound holds."""
    return _bound(trial, 3)


def _margin(trial: Trial, query: int) -> Measured:
    plain, found = outcomes(trial, measured=False), joins(trial, query)
    forms = {"Eq. 3.7 as published": "excess_published", "rows above the marks": "excess_marks"}
    readings = {
        text: [float(np.mean(getattr(each, name))) / one.excess for each, one in zip(found, plain, strict=True)]
        for text, name in forms.items()
    }
    ratio = [float(np.mean(each.excess)) / one.excess for each, one in zip(found, plain, strict=True)]
    return Measured(ratio, readings)


@claim(
    "wojoin.fig3.8.margin",
    source="WU Fig. 3.8-3.9",
    published="much wider than in Query 1",
    how="predicted over needed rows in the last join of Query 2 (mean of S7 and S8), over the same in Query 1",
    low=1.1,
)
def wider_same(trial: Trial) -> Measured:
    """Margins grow behind a join, because factors are bounds there."""
    return _margin(trial, 2)


@claim(
    "wojoin.fig3.10.margin",
    source="WU Fig. 3.10-3.11",
    published="much wider than in Query 1",
    how="the same for Query 3",
    low=1.1,
)
def wider_other(trial: Trial) -> Measured:
    """Margins grow behind a join on another column, too."""
    return _margin(trial, 3)


def _ratio(found: list[MeanRows], above: BufferStrategy, below: BufferStrategy, form: BufferForm) -> list[float]:
    return [each[above, form] / each[below, form] for each in found]


def _compared(found: list[MeanRows], above: BufferStrategy, below: BufferStrategy) -> Measured:
    """The ratio of FIFO buffers by the corrected model, and by the other forms."""
    readings = {
        "FIFO as published": _ratio(found, above, below, "published"),
        "rows above the marks": _ratio(found, above, below, "marks"),
    }
    return Measured(_ratio(found, above, below, "corrected"), readings)


def averages(trial: Trial, query: int) -> list[MeanRows]:
    """Mean memory in a query, one for each seed."""
    chosen = {1: 1, 2: 2, 3: 3}[query]
    return trial.map(memory, [MemoryRun(chosen, seed) for seed in trial.seeds])  # type: ignore[arg-type]


def _s3(trial: Trial) -> list[MeanRows]:
    return trial.map(of_s3, [MemoryRun(1, seed) for seed in trial.seeds])


@claim(
    "wojoin.fig3.13.msf",
    source="WU Fig. 3.13",
    published="insignificant",
    how="greatest memory of S3 in Query 1 with MSF over that without",
    low=0.9,
    high=1.1,
)
def msf_saves_little(trial: Trial) -> Measured:
    """The memory for sorting offsets what an ordered stream saves."""
    return _compared(_s3(trial), "msf", "plain")


@claim(
    "wojoin.fig3.13.dbf",
    source="WU Fig. 3.13",
    published="below a certain value whatever the lag",
    how="greatest memory of S3 in Query 1 with DBF over that without",
    high=0.3,
)
def dbf_bounds_the_lag(trial: Trial) -> Measured:
    """A leading stream that rests needs no memory for its lag."""
    return _compared(_s3(trial), "dbf", "plain")


def _hybrid(trial: Trial, query: int) -> Measured:
    found = averages(trial, query)

    def least(form: BufferForm) -> list[float]:
        others: tuple[BufferStrategy, ...] = ("plain", "msf", "dbf")
        return [each["hybrid", form] / min(each[other, form] for other in others) for each in found]

    return Measured(
        least("corrected"), {"FIFO as published": least("published"), "rows above the marks": least("marks")}
    )


@claim(
    "wojoin.fig3.14.hybrid1",
    source="WU Fig. 3.14",
    published="lowest",
    how="mean memory of Query 1 with the hybrid over the least of the others",
    high=1.0,
)
def hybrid_1(trial: Trial) -> Measured:
    """The hybrid needs least."""
    return _hybrid(trial, 1)


@claim(
    "wojoin.fig3.14.hybrid2",
    source="WU Fig. 3.14",
    published="lowest",
    how="the same of Query 2",
    high=0.7,
)
def hybrid_2(trial: Trial) -> Measured:
    """Also with pipelines."""
    return _hybrid(trial, 2)


@claim(
    "wojoin.fig3.14.hybrid3",
    source="WU Fig. 3.14",
    published="lowest",
    how="the same of Query 3",
    high=0.7,
)
def hybrid_3(trial: Trial) -> Measured:
    """Also on another column."""
    return _hybrid(trial, 3)


@claim(
    "wojoin.fig3.14.query1",
    source="WU Fig. 3.14",
    published="DBF below MSF",
    how="mean memory of Query 1 with DBF over MSF",
    high=0.8,
)
def dbf_below(trial: Trial) -> Measured:
    """With one join, resting saves more than sorting."""
    return _compared(averages(trial, 1), "dbf", "msf")


@claim(
    "wojoin.fig3.14.query2",
    source="WU Fig. 3.14",
    published="DBF above MSF",
    how="mean memory of Query 2 with DBF over MSF",
    low=1.0,
)
def dbf_above_2(trial: Trial) -> Measured:
    """With pipelines, sorting saves more: only the first joins sort, and the last one profits."""
    return _compared(averages(trial, 2), "dbf", "msf")


@claim(
    "wojoin.fig3.14.query3",
    source="WU Fig. 3.14",
    published="DBF above MSF",
    how="mean memory of Query 3 with DBF over MSF",
    low=1.0,
)
def dbf_above_3(trial: Trial) -> Measured:
    """Also on another column."""
    return _compared(averages(trial, 3), "dbf", "msf")


def _row(trial: Trial, factor: int, minutes: float, form: BufferForm, *, phases: int = 1) -> Measured:
    found = trial.map(saved, [ReplayRun(factor, minutes, seed, phases) for seed in trial.seeds])
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return Measured([], skipped=_NO_TRACE)
    texts: dict[BufferForm, str] = {"published": "FIFO as published", "corrected": "FIFO corrected", "marks": "marks"}
    readings = {text: [each[other] for each in known] for other, text in texts.items() if other != form}
    return Measured([each[form] for each in known], readings)


@claim(
    "wojoin.table5.4.row1",
    source="WU Table 5.4",
    published=0.0,
    how="share of the windows' memory that is saved: in order, no lags (FIFO corrected)",
    low=-0.05,
    high=0.05,
)
def row_1(trial: Trial) -> Measured:
    """Nothing to save where nothing is late."""
    return _row(trial, 0, 0.0, "corrected")


@claim(
    "wojoin.table5.4.row2",
    source="WU Table 5.4",
    published=0.46,
    how="the same: factors up to 200 that change over time, no lags (marks); the published size is not reached",
    low=0.1,
)
def row_2(trial: Trial) -> Measured:
    """Marks save memory where streams are scrambled; buffers of the latest rows do not."""
    return _row(trial, 200, 0.0, "marks", phases=10)


@claim(
    "wojoin.table5.4.row3",
    source="WU Table 5.4, text",
    published=0.12,
    how="the same: in order, lags up to 10 min (FIFO corrected)",
    low=0.05,
    high=0.3,
)
def row_3(trial: Trial) -> Measured:
    """Lags that stay save little."""
    return _row(trial, 0, 10.0, "corrected")


@claim(
    "wojoin.table5.4.row3_table",
    source="WU Table 5.4",
    published=0.12,
    how="the same with lags up to 120 min, as the table says and the text does not (FIFO corrected)",
    low=0.0,
    high=0.3,
)
def row_3_of_the_table(trial: Trial) -> Measured:
    """The other reading of row 3."""
    return _row(trial, 0, 120.0, "corrected")


@claim(
    "wojoin.table5.4.row4",
    source="WU Table 5.4",
    published=0.61,
    how="the same: factors up to 200 and lags up to 10 min that change (marks); the published size is not reached",
    low=0.1,
)
def row_4(trial: Trial) -> Measured:
    """Marks save memory with both; buffers of the latest rows do not."""
    return _row(trial, 200, 10.0, "marks", phases=10)
