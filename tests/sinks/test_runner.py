import json
import time

import pyarrow as pa
import pytest
from tests.sinks.kit import kill_and_finish

from freshet.log import Limits, Log, Retention
from freshet.model import ARRIVAL, UserError
from freshet.sinks import CallbackOptions, CallbackSink, MemoryOptions, MemorySink, SinkRunner, Token, create


@pytest.fixture
def log(tmp_path):
    with Log.open(tmp_path / "state", limits=Limits(min_free_bytes=0)) as log:
        log.declare("q", Retention())
        yield log


def append(log: Log, *values: int) -> None:
    log.append("q", pa.table({"v": pa.array(values, pa.int64()), ARRIVAL: pa.array([5] * len(values), pa.int64())}))


def memory(**options) -> MemorySink:
    return MemorySink(MemoryOptions(**options))


def until(condition, timeout: float = 600.0) -> None:
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def test_rows_reach_all_sinks_with_cursors_of_their_own(log):
    append(log, 1, 2)
    first, second = memory(), memory(arrival=True)
    runner = SinkRunner(log, interval=0.01)
    runner.add("q", "a", first)
    runner.start()
    assert first.wait(2, 60)
    runner.add("q", "b", second, start="latest")
    append(log, 3)
    runner.notify()
    assert first.wait(3, 60)
    assert second.wait(1, 60)
    assert runner.stop()
    assert [row["v"] for row in first.rows()] == [1, 2, 3]
    assert second.rows() == [{"v": 3, ARRIVAL: 5}]
    assert (log.cursor("q/a"), log.cursor("q/b")) == (3, 3)
    assert {(status.name, status.state, status.rows) for status in runner.statuses} == {
        ("a", "stopped", 3),
        ("b", "stopped", 1),
    }


def test_a_failing_sink_is_tried_again_and_the_others_go_on(log):
    tokens: list[Token] = []
    broken = True

    def function(table: pa.Table, token: Token) -> None:
        tokens.append(token)
        if broken:
            raise RuntimeError("no network")

    good = memory()
    runner = SinkRunner(log, interval=0.01)
    runner.add("q", "bad", CallbackSink(CallbackOptions(function=function)))
    runner.add("q", "good", good)
    runner.start()
    append(log, 1)
    until(lambda: len(tokens) >= 2)
    append(log, 2)
    assert good.wait(2, 60)
    status = next(status for status in runner.statuses if status.name == "bad")
    assert (status.state, status.reason, status.waiting) == ("failing", "RuntimeError: no network", 2)
    assert status.failures >= 2
    broken = False
    until(lambda: log.cursor("q/bad") == 2)
    assert runner.stop()
    assert {token.first for token in tokens} <= {0, 1}
    status = next(status for status in runner.statuses if status.name == "bad")
    assert (status.reason, status.rows) == (None, 2)


def test_stop_drains(log):
    sink = memory()
    runner = SinkRunner(log, interval=60.0, max_rows=3)
    runner.add("q", "a", sink)
    runner.start()
    for value in range(20):
        append(log, value)
    assert runner.stop()
    assert [row["v"] for row in sink.rows()] == list(range(20))


def test_stop_without_drain_leaves_rows_for_the_next_run(log):
    def block(table: pa.Table, token: Token) -> None:
        raise RuntimeError("never")

    append(log, 1)
    runner = SinkRunner(log, interval=0.01)
    runner.add("q", "a", CallbackSink(CallbackOptions(function=block)))
    runner.start()
    until(lambda: runner.statuses[0].failures > 0)
    assert runner.stop(drain=False)
    assert log.cursor("q/a") == 0
    sink = memory()
    again = SinkRunner(log)
    again.add("q", "a", sink)
    again.start()
    assert again.stop()
    assert [row["v"] for row in sink.rows()] == [1]


def test_a_failed_advance_does_not_double_rows(log, tmp_path, monkeypatch):
    append(log, 1, 2)
    runner = SinkRunner(log, interval=0.01)
    runner.add("q", "a", create("jsonl", {"path": str(tmp_path / "out.jsonl")}))
    advance = log.advance_all
    failures: list[int] = []

    def advance_later(*arguments, **options):
        if len(failures) < 2:
            failures.append(1)
            raise OSError("disk full")
        return advance(*arguments, **options)

    monkeypatch.setattr(log, "advance_all", advance_later)
    runner.start()
    until(lambda: log.cursor("q/a") == 2)
    assert runner.stop()
    assert [json.loads(line)["v"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [1, 2]


def test_a_sink_counts_what_the_log_gave_up(log):
    append(log, 1, 2)
    runner = SinkRunner(log, interval=0.01)
    sink = memory()
    runner.add("q", "a", sink)
    log.set_need("q/a", False)
    log.declare("q", Retention(history_age=0.0, history_bytes=0, bound_bytes=0))
    log.collect()
    runner.start()
    until(lambda: runner.statuses[0].lost == 2)
    log.declare("q", Retention())
    append(log, 3)
    runner.stop()
    assert [row["v"] for row in sink.rows()] == [3]
    assert [(loss.edge, loss.first, loss.end) for loss in log.ledger()] == [("q/a", 0, 2)]


def test_a_sink_that_was_out_goes_on_and_counts_what_it_missed(log, tmp_path):
    def lines() -> list[int]:
        return [json.loads(line)["v"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]

    def run() -> int:
        runner = SinkRunner(log, interval=0.01)
        lost = runner.add("q", "a", create("jsonl", {"path": str(tmp_path / "out.jsonl")})).lost
        runner.start()
        runner.stop()
        log.park(["q/a"])
        return lost

    append(log, 1, 2)
    assert run() == 0
    append(log, 3)
    assert run() == 0
    assert lines() == [1, 2, 3]
    append(log, 4, 5)
    log.declare("q", Retention(history_age=0.0, history_bytes=0))
    log.collect()
    append(log, 6)
    assert run() == 2
    assert lines() == [1, 2, 3, 6]
    assert [(loss.edge, loss.first, loss.end) for loss in log.ledger()] == [("q/a", 3, 5)]


def test_a_sink_that_cannot_be_opened_leaves_no_trace(log, tmp_path):
    (tmp_path / "out.jsonl").write_text("x\n")
    append(log, 1)
    runner = SinkRunner(log)
    with pytest.raises(UserError, match="did not write"):
        runner.add("q", "a", create("jsonl", {"path": str(tmp_path / "out.jsonl")}))
    assert log.readers() == {}
    log.start_reader("q/a", "q")
    log.park(["q/a"])
    with pytest.raises(UserError, match="did not write"):
        runner.add("q", "a", create("jsonl", {"path": str(tmp_path / "out.jsonl")}))
    assert log.readers()["q/a"].parked


def test_removed_sinks_get_nothing_more(log):
    sink = memory()
    runner = SinkRunner(log, interval=0.01)
    runner.add("q", "a", sink)
    with pytest.raises(UserError, match="already"):
        runner.add("q", "a", memory())
    runner.start()
    runner.remove("q")
    append(log, 1)
    runner.stop()
    assert sink.rows() == []
    assert runner.statuses == []


def test_sigkill_at_any_moment_leaves_every_row_exactly_once(tmp_path):
    out = tmp_path / "out.jsonl"
    count = kill_and_finish(tmp_path / "state", "jsonl", {"path": str(out)}, [1, 1500])
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == list(range(count))
