from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from freshet.engine import LogQueues
from freshet.log import Log, Retention, SegmentWriter
from freshet.model import ARRIVAL, Commit


def table(*arrivals: int) -> pa.Table:
    return pa.table({"v": list(range(len(arrivals))), ARRIVAL: list(arrivals)})


def test_an_intermediate_queue_comes_with_its_first_tuples_and_goes_with_its_reader(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        queues = LogQueues(log)
        log.declare("s")
        queues.start_reader("q.filter_1", "s", "earliest")
        assert queues.start_reader("q.project", "q.project", "earliest", "operator", "q") == 0
        assert "q.project" not in log.streams()
        assert queues.end("q.project") == 0
        log.append("s", table(1_000_000, 2_000_000))
        queues.notice("s")
        assert queues.grown() == ["s"]
        assert queues.grown() == []
        with SegmentWriter(log.folder, "one") as writer:
            writer.add("q.project", table(2_000_000))
            file = writer.finish()
        told: list[None] = []
        queues.committed = lambda: told.append(None)
        queues.commit([Commit((("q.filter_1", "s", 0, 2),), (file,))])
        assert told == [None]
        assert queues.grown() == ["q.project"]
        assert queues.end("q.project") == 1
        assert log.cursor("q.project") == 0
        assert (log.kind("q.project"), log.readers()["q.project"].owner) == ("queue", "q")
        assert queues.arrival("q.project", 0) == 2.0
        queues.park(["q.filter_1", "q.project", "q.never"])
        readers = log.readers()
        assert readers["q.filter_1"].parked
        # What waits between two operators is nowhere else, so it is held while the query is out.
        assert readers["q.project"].quarantined
        log.declare("s", Retention(0, 0))
        log.collect()
        assert (log.oldest("s"), log.oldest("q.project"), log.end("q.project")) == (2, 0, 1)
        queues.park(["q.filter_1", "q.project"])
        assert queues.start_reader("q.filter_1", "s", "earliest") == 2
        assert queues.start_reader("q.project", "q.project", "earliest") == 0


def test_what_is_unknown_to_the_log_is_left_alone(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        queues = LogQueues(log)
        log.declare("s")
        queues.start_reader("q.filter_1", "s", "earliest")
        queues.set_need("q.project", False)
        readers, streams = log.readers(), log.streams()
        assert (list(readers), list(streams)) == (["q.filter_1"], ["s"])
        assert readers["q.filter_1"].needed
        # One that is known is sent out all the same.
        queues.park(["q.project", "q.filter_1"])
        readers = log.readers()
        assert list(readers) == ["q.filter_1"]
        assert readers["q.filter_1"].parked


def test_only_an_output_whose_bound_is_hit_is_held(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        queues = LogQueues(log, look_every=0.0)
        log.declare("q", Retention(bound_bytes=1))
        log.start_reader("q/sink", "q")
        assert queues.held() == {}
        log.append("q", table(1))
        assert list(queues.held()) == ["q"]
        log.advance("q/sink", "q", 1)
        assert queues.held() == {}


def test_the_arrival_of_a_tuple_that_is_gone_is_that_of_the_oldest_left(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.declare("s", Retention(history_age=None, history_bytes=0))
        log.append("s", table(1_000_000))
        log.collect()
        log.append("s", table(5_000_000))
        assert LogQueues(log).arrival("s", 0) == 5.0
