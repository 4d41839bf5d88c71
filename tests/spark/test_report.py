from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from freshet.spark.report import ChainReport, TaskReport, merge_samples, read_reports, sample

_arrivals = st.lists(st.integers(0, 10**15), max_size=60)


def test_reports_come_in_the_order_of_the_train():
    reports = [TaskReport(part, f"u-{part}-9.arrows", 64, ()) for part in (2, 0, 1)]
    assert [report.part for report in read_reports(report.batch() for report in reports)] == [0, 1, 2]


def test_a_report_survives_the_way():
    chain = ChainReport(1, 2, (3, 64, 128, 10, 30), (5, 3), (700, 900), (10, 20, 30), 4, 'it\'s "bad"\n')
    empty = ChainReport(1, 3, None, (0, 0), (1, 2))
    report = TaskReport(0, "u-0-1.arrows", 192, (chain, empty))
    assert read_reports([report.batch()]) == [report]


@given(arrivals=_arrivals)
def test_a_sample_has_the_ends_and_is_sorted(arrivals: list[int]):
    found = sample(np.array(arrivals, np.int64))
    assert list(found) == sorted(found)
    assert set(found) <= set(arrivals)
    assert len(found) == min(len(arrivals), 17)
    if arrivals:
        assert (found[0], found[-1]) == (min(arrivals), max(arrivals))
    if len(arrivals) <= 17:
        assert list(found) == sorted(arrivals)


@given(parts=st.lists(_arrivals, max_size=4))
def test_merged_samples_look_like_the_sample_of_all(parts: list[list[int]]):
    merged = merge_samples([(sample(np.array(part, np.int64)), len(part)) for part in parts])
    whole = sorted(arrival for part in parts for arrival in part)
    assert len(merged) == min(len(whole), 17)
    assert list(merged) == sorted(merged)
    if whole:
        assert (merged[0], merged[-1]) == (whole[0], whole[-1])
    if all(len(part) <= 17 for part in parts) and len(whole) <= 17:
        assert list(merged) == whole
