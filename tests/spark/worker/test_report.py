from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from freshet.spark.worker.report import ChainReport, TaskReport, merge_samples, read_reports, report_row, sample

_arrivals = st.lists(st.integers(0, 10**15), max_size=60)


def test_reports_come_in_the_order_of_the_train():
    reports = [TaskReport(part, f"u-{part}-9.arrows", 64, ()) for part in (2, 0, 1)]
    rows = ", ".join(f"[{report.text()}]" for report in reports)
    assert [report.part for report in read_reports(f"[{rows}]")] == [0, 1, 2]


def test_a_report_survives_the_way():
    chain = ChainReport(2, (3, 64, 128, 10, 30), (5, 3), (700, 900), (10, 20, 30), 4, 'it\'s "bad"\n')
    empty = ChainReport(3, None, (0, 0), (1, 2))
    report = TaskReport(0, "u-0-1.arrows", 192, (chain, empty))
    assert read_reports(f"[[{report.text()}]]") == [report]


def test_a_long_report_goes_by_a_file_that_is_read_once(tmp_path: Path):
    report = TaskReport(0, "u-0-1.arrows", 192, tuple(ChainReport(n, None, (0,), (1,)) for n in range(400)))
    row = report_row(report.text(), tmp_path / "u-0-1.report", 1).column(0)[0].as_py()
    assert len(row) < 300
    assert read_reports(f"[[{row}]]") == [report]
    assert not list(tmp_path.iterdir())


def test_a_short_report_needs_no_file(tmp_path: Path):
    report = TaskReport(0, None, 0, (ChainReport(0, None, (0,), (1,)),))
    assert report_row(report.text(), tmp_path / "r", 1).column(0)[0].as_py() == report.text()
    assert not list(tmp_path.iterdir())


@given(arrivals=_arrivals)
def test_a_sample_has_the_ends_and_is_sorted(arrivals: list[int]):
    found = sample(np.array(arrivals, np.int64))
    assert list(found) == sorted(found)
    assert set(found) <= set(arrivals)
    if arrivals:
        assert (found[0], found[-1]) == (min(arrivals), max(arrivals))
    if len(set(arrivals)) == 1:
        assert len(found) == 1
    else:
        assert len(found) == min(len(arrivals), 17)
        assert len(arrivals) > 17 or list(found) == sorted(arrivals)


@given(parts=st.lists(_arrivals, max_size=4))
def test_merged_samples_look_like_the_sample_of_all(parts: list[list[int]]):
    merged = merge_samples([(sample(np.array(part, np.int64)), len(part)) for part in parts])
    whole = sorted(arrival for part in parts for arrival in part)
    assert list(merged) == sorted(merged)
    if whole:
        assert (merged[0], merged[-1]) == (whole[0], whole[-1])
    if len(set(whole)) == 1:
        assert len(merged) == 1
    else:
        assert len(merged) == min(len(whole), 17)
        if all(len(part) <= 17 for part in parts) and len(whole) <= 17:
            assert list(merged) == whole
