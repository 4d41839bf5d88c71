import math
import threading
import time

import pyarrow as pa
import pytest

from freshet.log import Intake, Limits, Log, LogFull, Retention
from freshet.model import ARRIVAL, FreshetError, Stream, UserError, parse_schema
from freshet.sources import Backpressure, Feeder, PushSource, create

STREAM = Stream("s", parse_schema("id bigint, v double"))
ENDLESS = {"rate": 20_000, "columns": {"id": {"kind": "sequence"}}}


@pytest.fixture
def log(tmp_path):
    with Log.open(tmp_path / "state", limits=Limits(min_free_bytes=0)) as log:
        log.declare("s", Retention())
        yield log


def feeder(log: Log, source, **options) -> Feeder:
    return Feeder(source, Intake(log, STREAM), log, "s", **options)


def until(condition, timeout: float = 600.0) -> None:
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def ids(log: Log) -> list[int]:
    return list(log.read("s", log.oldest("s"), log.end("s"))["id"].to_pylist())


def test_rows_come_in_once_and_in_order_over_restarts(log):
    woken = []
    for round_ in range(3):
        feed = feeder(log, create("generator", ENDLESS, STREAM), wake=lambda: woken.append(1))
        before = log.end("s")
        feed.start()
        until(lambda before=before: log.end("s") > before + 500)
        assert feed.stop()
        assert feed.status.state == "stopped"
        assert feed.status.rows == log.end("s") - before
        assert len(woken) >= feed.status.batches > 0, round_
    assert ids(log) == list(range(log.end("s")))


def test_an_exhausted_source_goes_on_with_heartbeats(log):
    feed = feeder(log, create("generator", ENDLESS | {"limit": 100}, STREAM), heartbeat=0.02)
    feed.start()
    until(lambda: feed.status.state == "exhausted" and feed.status.heartbeats >= 3)
    feed.stop()
    assert ids(log) == list(range(100))
    [beat] = [beat for beat in log.heartbeats("s") if beat.offset == 100]
    assert beat.time > log.arrival("s", 99)
    assert log.meters().streams["s"].heartbeats == feed.status.heartbeats


def test_a_source_that_finds_nothing_new_waits_until_there_is(log, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    states = []
    source = create("files", {"path": folder, "settle": 0, "interval": "10 ms"}, STREAM)
    feed: Feeder = feeder(log, source, wake=lambda: states.append(feed.status.state))
    feed.start()
    for number in range(2):
        until(lambda: feed.status.state == "waiting")
        whole = tmp_path / f"{number}.csv"
        whole.write_text(f"id,v\n{number},0.5\n")
        whole.rename(folder / whole.name)
        until(lambda number=number: states.count("running") == number + 1)
        assert log.end("s") == number + 1
    feed.stop()
    assert feed.status.state == "stopped"


def test_a_source_between_two_batches_does_not_wait(log):
    feed = feeder(log, create("generator", ENDLESS | {"rate": 50}, STREAM))
    seen = set()
    feed.start()
    while log.end("s") < 100:
        seen.add(feed.status.state)
        time.sleep(0.005)
    feed.stop()
    assert seen <= {"new", "running"}


def test_a_full_log_holds_the_source_back_and_loses_nothing(log):
    log.declare("s", Retention(history_bytes=0, history_age=0.0, bound_bytes=20_000))
    log.start_reader("slow", "s")
    source = create("generator", ENDLESS | {"rate": 200_000, "limit": 30_000, "max_rows": 1000}, STREAM)
    feed = feeder(log, source)
    feed.start()
    seen: list[int] = []
    until(lambda: feed.status.state == "held back")
    assert "bytes wait for its readers, the bound is 20,000" in (feed.status.reason or "")
    assert "held back" not in (feed.status.reason or ""), "its state says that"
    while len(seen) < 30_000:
        taken = len(seen)
        until(lambda taken=taken: log.end("s") > taken)
        end = log.end("s")
        seen += log.read("s", taken, end)["id"].to_pylist()
        log.advance("slow", "s", end)
    feed.stop()
    assert seen == list(range(30_000))
    assert feed.status.held_back >= 1
    assert feed.status.held_seconds > 0
    assert feed.status.reason is None


def test_a_held_back_feeder_stops_and_the_batch_comes_after_the_restart(log):
    log.declare("s", Retention(bound_bytes=1))
    log.start_reader("slow", "s")
    feed = feeder(log, create("generator", ENDLESS, STREAM))
    feed.start()
    until(lambda: feed.status.state == "held back")
    assert feed.stop()
    taken = log.end("s")
    log.declare("s", Retention())
    again = feeder(log, create("generator", ENDLESS, STREAM))
    again.start()
    until(lambda: log.end("s") > taken + 100)
    again.stop()
    assert ids(log) == list(range(log.end("s")))


class Broken:
    def restore(self, position):
        pass

    def poll(self, now):
        raise RuntimeError("the cable is cut")

    def next_due(self):
        return 0.0

    def close(self):
        self.closed = True


def test_a_failing_source_is_reported(log, caplog):
    source = Broken()
    feed = feeder(log, source)
    feed.start()
    until(lambda: feed.status.state == "failed")
    assert feed.status.reason == "RuntimeError: the cable is cut"
    assert feed.stop()
    assert feed.status.state == "failed"
    assert source.closed
    assert "the cable is cut" in caplog.text


def pushing(log: Log, **options) -> tuple[PushSource, Feeder]:
    source = create("push", {}, STREAM)
    assert isinstance(source, PushSource)
    feed = feeder(log, source, **options)
    feed.start()
    return source, feed


def test_pushes_from_many_threads_are_durable_when_they_return(log):
    source, feed = pushing(log, heartbeat=0.005)

    def pusher(number: int) -> None:
        for turn in range(20):
            start = number * 1000 + turn
            receipt = source.push([{"id": start, "v": 1}] if turn % 2 else pa.table({"id": [start]}))
            assert log.read("s", receipt.first, receipt.end)["id"].to_pylist() == [start]

    threads = [threading.Thread(target=pusher, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    feed.stop()
    assert sorted(ids(log)) == sorted(number * 1000 + turn for number in range(4) for turn in range(20))
    # A heartbeat says that nothing came before its time that does not stand before it.
    for beat in log.heartbeats("s"):
        if beat.offset < log.end("s"):
            assert log.arrival("s", beat.offset) >= beat.time


def test_a_push_counts_what_it_set_aside(log):
    source, feed = pushing(log)
    receipt = source.push([{"id": "one"}, {"id": 2}])
    feed.stop()
    assert (receipt.dead, receipt.end - receipt.first) == (1, 1)
    assert (feed.status.rows, feed.status.dead) == (1, 1)


def test_a_push_into_a_full_log_waits_or_says_so(log):
    log.declare("s", Retention(bound_bytes=1))
    log.start_reader("slow", "s")
    source, feed = pushing(log)
    source.push([{"id": 1}])
    with pytest.raises(Backpressure, match="bound"):
        source.push([{"id": 2}], block=False)
    with pytest.raises(Backpressure, match="bound"):
        source.push([{"id": 2}], timeout=0.05)
    timer = threading.Timer(0.1, lambda: log.advance("slow", "s", 1))
    timer.start()
    assert source.push([{"id": 3}]).first == 1
    timer.join()
    feed.stop()
    assert ids(log) == [1, 3]


def test_no_pushes_without_a_running_application(log):
    source = create("push", {}, STREAM)
    assert isinstance(source, PushSource)
    with pytest.raises(FreshetError, match="not running"):
        source.push([{"id": 1}])
    source, feed = pushing(log)
    feed.stop()
    with pytest.raises(FreshetError, match=r"stopping|not running"):
        source.push([{"id": 1}])
    assert source.next_due() == math.inf


def test_log_full_is_not_a_failure_of_a_blocked_push_at_stop(log):
    log.declare("s", Retention(bound_bytes=1))
    log.start_reader("slow", "s")
    source, feed = pushing(log)
    source.push([{"id": 1}])
    raised: list[BaseException] = []

    def blocked() -> None:
        try:
            source.push([{"id": 2}])
        except FreshetError as error:
            raised.append(error)

    thread = threading.Thread(target=blocked)
    thread.start()
    feed.stop()
    thread.join(30)
    assert not thread.is_alive()
    assert len(raised) == 1
    assert not isinstance(raised[0], LogFull)


def test_rows_are_pushed_in_all_the_forms_that_programs_have(log):
    import pandas as pd

    source = create("push", {}, STREAM)
    assert isinstance(source, PushSource)
    feed = feeder(log, source)
    feed.start()
    rows = [{"id": 1, "v": 1.5}, {"id": 2, "v": None}]
    table = pa.Table.from_pylist(rows)
    mixed = pd.DataFrame({"id": [1, "two", None], "v": [1.5, 2.5, None]})
    frame = pd.DataFrame(rows, index=["a", "b"])
    for form in (rows, tuple(rows), iter(rows), table, table.to_batches()[0], frame, frame.convert_dtypes()):
        receipt = source.push(form)
        assert (receipt.end - receipt.first, receipt.dead) == (2, 0), form
        assert log.read("s", receipt.first, receipt.end).drop_columns([ARRIVAL]).to_pylist() == rows
    receipt = source.push(mixed)
    assert (receipt.end - receipt.first, receipt.dead) == (2, 1), "only the value that does not fit"
    assert log.read("s", receipt.first, receipt.end)["id"].to_pylist() == [1, None]
    end = log.end("s")
    for wrong, name in (({"id": 1}, "dict"), ("id", "str"), (7, "int"), (None, "NoneType")):
        with pytest.raises(UserError, match=rf"push a list of rows, .* not a {name}"):
            source.push(wrong)
    assert log.end("s") == end
    feed.stop()
