"""Units that residents run: answers as of Spark jobs, whatever happens to the residents."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.kit import Harness, query, with_arrivals, write_train

from freshet.model import Unit, UnitResult
from freshet.model.functions import Vectorised, make_known
from freshet.spark.driver.residents import patience
from freshet.spark.driver.residents.slots import free_slots
from freshet.spark.driver.running import last_words
from freshet.spark.worker.resident import LOOK, Post
from freshet.spark.worker.wire import Channel, Stranger
from freshet.sql import OwnFunctions, build_query

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

_numbers = itertools.count()
SCHEMA = pa.schema([("v", pa.int64())])


@pytest.fixture
def residents(spark: SparkSession, tmp_path: Path) -> Iterator[Harness]:
    with Harness(spark, tmp_path, residents=1) as one:
        assert one.pool.wait_until_there(300.0)
        yield one


def rows(first: int = 0, count: int = 100) -> pa.Table:
    return with_arrivals(pa.table({"v": pa.array(range(first, first + count), pa.int64())}))


def test_a_resident_runs_a_compiled_unit(residents: Harness) -> None:
    residents.install({"s": SCHEMA}, query("q", "s", "v >= 90"))
    result = residents.run(residents.unit(write_train(residents.state, "s", rows()), "q"))
    assert result.way == "resident"
    read = residents.read(result, "q")
    assert read is not None
    assert read["v"].to_pylist() == list(range(90, 100))
    [file] = result.files
    assert file.name.endswith("-0-d1.arrows")
    assert set(result.parts) == {"plan", "send", "work", "report"}


def test_what_is_not_compiled_goes_to_spark(residents: Harness) -> None:
    residents.install({"s": SCHEMA}, query("q", "s", "crc32(cast(v AS string)) > 0"))
    result = residents.run(residents.unit(write_train(residents.state, "s", rows()), "q"))
    assert result.way == "catalyst"
    assert result.chains[0].rows_out == 100


def test_a_resident_that_is_killed_while_idle_is_replaced(residents: Harness) -> None:
    residents.install({"s": SCHEMA}, query("q", "s", "v >= 90"))
    unit = residents.unit(write_train(residents.state, "s", rows()), "q")
    assert residents.run(unit).way == "resident"
    [there] = residents.pool.whereabouts()
    os.kill(there["process"], signal.SIGKILL)
    until = time.monotonic() + 600
    while residents.pool.losses == 0 or not residents.pool.idle():
        assert time.monotonic() < until
        residents.executor.finished()
        time.sleep(0.05)
    again = residents.unit(unit.chains[0].trains[0], "q")
    assert residents.run(again).way == "resident"


def wait_for(harness: Harness, what: Callable[[], bool], seconds: float = 120.0) -> None:
    """Waits as an engine does: the executor is asked again and again."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        harness.executor.finished()
        time.sleep(0.02)


def is_there(harness: Harness, process: int | None = None) -> bool:
    """Whether a resident is idle, and is another process than before."""
    return any(seat.presence is not None and seat.presence.process != process for seat in harness.pool.idle())


class Hooked:
    """A query ``q`` that calls a function of one's own, which does something in the worker as long as a file is there.

    It notes in that file which process it is.
    """

    def __init__(self, harness: Harness, folder: Path, act: Callable[[Path], int | None]) -> None:
        self.harness, self.mark, name = harness, folder / "mark", f"act_{next(_numbers)}"
        mark = self.mark

        def hook(values: pa.Array) -> pa.Array:
            if mark.exists():
                mark.write_text(str(os.getpid()))
                return values.slice(act(mark) or 0)
            return values

        function = Vectorised(name, (pa.int64(),), pa.int64(), "1", lambda: hook)
        declared = OwnFunctions({name: make_known(function)})
        sql = f"SELECT {name}(v) AS v FROM s WHERE v >= 90"
        harness.install({"s": SCHEMA}, build_query("q", sql, {"s": SCHEMA}, functions=declared))
        harness.install({"s": SCHEMA}, query("good", "s", "v >= 95"))
        self.train = write_train(harness.state, "s", rows())

    def submit(self, *names: str) -> Unit:
        self.mark.write_text("")
        unit = self.harness.unit(self.train, *names)
        self.harness.executor.submit(unit)
        return unit

    def process(self) -> int:
        """The worker that runs the query now."""
        wait_for(self.harness, lambda: self.mark.read_text() != "")
        return int(self.mark.read_text())

    def check(self, unit: Unit) -> UnitResult:
        """The unit has its one right answer, and the resident is back."""
        result = self.harness.wait(unit.id)
        read = self.harness.read(result, "q")
        assert result.retry is None
        assert read is not None
        assert read["v"].to_pylist() == list(range(90, 100))
        return result


def sleep_while_there(mark: Path) -> None:
    while mark.exists():
        time.sleep(0.01)
    time.sleep(2 * LOOK)  # so that the resident looks again for a cancellation


def die(mark: Path) -> None:
    if mark.exists():
        os.kill(os.getpid(), signal.SIGSEGV)


def forget_one_once(mark: Path) -> int:
    """A function must give a value for each row, so this is a failure."""
    mark.unlink()
    return 1


def test_a_resident_that_is_killed_at_work_loses_nothing(residents: Harness, tmp_path: Path) -> None:
    hooked = Hooked(residents, tmp_path, sleep_while_there)
    unit = hooked.submit("q")
    process = hooked.process()
    assert process == residents.pool.whereabouts()[0]["process"]
    os.kill(process, signal.SIGKILL)
    hooked.mark.unlink()
    assert hooked.check(unit).way == "vectorised"
    wait_for(residents, lambda: is_there(residents, process))
    assert residents.run(residents.unit(hooked.train, "good")).way == "resident"
    assert residents.executor.residents()["lost"] == 1


def test_a_query_that_kills_its_worker_is_found_and_others_stand(residents: Harness, tmp_path: Path) -> None:
    hooked = Hooked(residents, tmp_path, die)
    result = residents.wait(hooked.submit("q", "good").id)
    bad, good = result.chains
    assert bad.failure is not None
    assert (good.failure, good.rows_out) == (None, 5)


def test_a_failure_that_a_spark_job_does_not_see_blames_no_query(residents: Harness, tmp_path: Path) -> None:
    hooked = Hooked(residents, tmp_path, forget_one_once)
    assert hooked.check(hooked.submit("q")).way == "vectorised"
    assert residents.executor.residents()["given_back"] == 1


def test_a_frozen_resident_is_ended_after_its_deadline(
    residents: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_LEAST", 2.0)
    hooked = Hooked(residents, tmp_path, sleep_while_there)
    unit = hooked.submit("q")
    process = hooked.process()
    os.kill(process, signal.SIGSTOP)
    hooked.mark.unlink()
    assert hooked.check(unit).way == "vectorised"
    wait_for(residents, lambda: is_there(residents, process))
    wait_for(residents, lambda: not psutil.pid_exists(process))


def test_a_cancelled_unit_ends_between_two_chains(residents: Harness, tmp_path: Path) -> None:
    hooked = Hooked(residents, tmp_path, sleep_while_there)
    unit = hooked.submit("q", "good")
    process = hooked.process()
    residents.executor.cancel(unit.id)
    hooked.mark.unlink()
    assert residents.wait(unit.id).retry == "cancelled"
    wait_for(residents, lambda: is_there(residents))
    assert residents.pool.whereabouts()[0]["process"] == process
    assert not list((residents.state / "segments").glob(f"{unit.id}-*"))


def test_a_unit_is_noted_while_a_resident_runs_it(residents: Harness, tmp_path: Path) -> None:
    hooked = Hooked(residents, tmp_path, sleep_while_there)
    unit = hooked.submit("q", "good")
    hooked.process()
    assert last_words(residents.state).queries == ("good", "q")
    hooked.mark.unlink()
    hooked.check(unit)
    assert last_words(residents.state).queries == ()


def is_closed(channel: Channel) -> bool:
    try:
        return bool(channel.take())
    except EOFError:
        return True


def test_strangers_and_those_of_earlier_terms_are_refused(residents: Harness) -> None:
    address = residents.pool._listener.address
    assert isinstance(address, str)
    assert Path(address).parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(Stranger):
        Post(address, b"guessed", 0, 1).connect()
    old = Post(address, residents.pool._secret, 0, 0).connect()
    wait_for(residents, lambda: is_closed(old))
    assert is_there(residents)


def test_two_runs_share_the_slots_of_one_spark(spark: SparkSession, tmp_path: Path) -> None:
    with Harness(spark, tmp_path / "one", residents=2) as one, Harness(spark, tmp_path / "two", residents=2) as two:
        # Two cores and two slots more, of which one run takes two; one is always left for jobs.
        assert (len(one.pool.seats), len(two.pool.seats)) == (2, 1)
        assert one.executor.residents()["reason"] is None
        why = "Spark has 4 slots: other runs hold 2, and one is left to jobs"
        assert two.executor.residents()["reason"] == why
        with Harness(spark, tmp_path / "three", residents=2) as three:
            assert (
                three.executor.residents()["reason"] == "Spark has 4 slots: other runs hold 3, and one is left to jobs"
            )
        for each in (one, two):
            assert each.pool.wait_until_there(300.0)
            each.install({"s": SCHEMA}, query("q", "s", "v >= 90"))
            result = each.run(each.unit(write_train(each.state, "s", rows()), "q"))
            assert (result.way, result.chains[0].rows_out) == ("resident", 10)
        two.install({"s": SCHEMA}, query("c", "s", "crc32(cast(v AS string)) > 0"))
        assert two.run(two.unit(write_train(two.state, "s", rows()), "c")).retry is None
    assert free_slots(spark.sparkContext) == 4


def test_a_large_train_is_split_over_residents(spark: SparkSession, tmp_path: Path) -> None:
    with Harness(spark, tmp_path, residents=2) as harness:
        assert harness.pool.wait_until_there(300.0)
        predicates = [query(f"q{number}", "s", f"v % 10 = {number}") for number in range(10)]
        harness.install({"s": SCHEMA}, *predicates)
        train = write_train(harness.state, "s", rows(0, 60_000))
        result = harness.run(harness.unit(train, *(each.name for each in predicates)))
        assert result.way == "resident"
        assert len(result.files) == 2
        read = harness.read(result, "q3")
        assert read is not None
        assert read["v"].to_pylist() == list(range(3, 60_000, 10))


def test_a_job_that_waits_for_a_slot_gets_that_of_a_resident(spark: SparkSession, tmp_path: Path) -> None:
    with Harness(spark, tmp_path, residents=3) as harness:
        assert harness.pool.wait_until_there(300.0)
        assert len(harness.pool.seats) == 3
        harness.install({"s": SCHEMA}, query("c", "s", "crc32(cast(v AS string)) > 0"))
        train = write_train(harness.state, "s", rows())
        held = threading.Event()
        # Somebody else's job holds the one slot that residents leave.
        thread = threading.Thread(target=hold_a_slot, args=(spark, tmp_path / "held", held))
        thread.start()
        try:
            assert held.wait(60.0)
            result = harness.run(harness.unit(train, "c"))
            assert result.retry is None
            assert len(harness.pool.whereabouts()) == 2
            wait_for(harness, lambda: harness.pool.reason is not None)
            assert "has left its slot to a Spark job" in (harness.executor.residents()["reason"] or "")
        finally:
            (tmp_path / "held").unlink()
            thread.join()


def test_a_job_of_somebody_else_gets_the_slot_of_a_resident_too(spark: SparkSession, tmp_path: Path) -> None:
    with Harness(spark, tmp_path, residents=3) as harness:
        assert harness.pool.wait_until_there(300.0)
        held = threading.Event()
        holds = threading.Thread(target=hold_a_slot, args=(spark, tmp_path / "held", held))
        holds.start()
        waits = threading.Thread(target=spark.range(0, 1, 1, 1).mapInArrow(lambda batches: batches, "id long").collect)
        try:
            assert held.wait(60.0)
            waits.start()
            wait_for(harness, lambda: not waits.is_alive())
            assert len(harness.pool.whereabouts()) == 2
        finally:
            (tmp_path / "held").unlink()
            holds.join()
            waits.join()


def hold_a_slot(spark: SparkSession, mark: Path, held: threading.Event) -> None:
    """Runs a task until the file is removed."""
    mark.touch()

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        mark.write_text("held")
        while mark.exists():
            time.sleep(0.05)

    waiting = threading.Thread(target=spark.range(0, 1, 1, 1).mapInArrow(wait, "id long").collect)
    waiting.start()
    while not mark.read_text():
        time.sleep(0.05)
    held.set()
    waiting.join()
