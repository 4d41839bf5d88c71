"""The log against a model of it in plain Python: lists of values, numbers for cursors."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from freshet.log import CursorMoved, Lagged, Limits, Log, LogFull, LogReader, Retention, SegmentWriter
from freshet.model import ARRIVAL, Commit, FreshetError

STREAMS = ("a", "b", "c")
READERS = {"ra": "a", "rb": "b", "sink": "c", "late": "a"}
SMALL = st.integers(0, 4)


def table(values: list[int]) -> pa.Table:
    return pa.table({"v": pa.array(values, pa.int64()), ARRIVAL: pa.array([0] * len(values), pa.int64())})


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.state = Path(tempfile.mkdtemp())
        self.now = 1000.0
        self.log = self.open()
        self.reader: LogReader | None = None
        self.values: dict[str, list[int]] = {stream: [] for stream in STREAMS}
        self.cursors: dict[str, int] = {}
        self.working: dict[str, bool] = {}
        self.parked: set[str] = set()
        self.lost: dict[str, int] = {}
        self.dead: dict[str, int] = dict.fromkeys(STREAMS, 0)
        self.positions: dict[str, int] = {}
        self.number = 0

    def open(self) -> Log:
        return Log.open(self.state, now=lambda: self.now, limits=Limits(min_free_bytes=0, sparse_age=0))

    def teardown(self) -> None:
        if self.reader is not None:
            self.reader.close()
        self.log.close()
        shutil.rmtree(self.state)

    @initialize(age=st.sampled_from([0, 3, None]), size=st.sampled_from([0, 900, None]))
    def declare(self, age: float | None, size: int | None) -> None:
        for stream in STREAMS:
            self.log.declare(stream, Retention(age, size, bound_bytes=6000))
        self.reader = LogReader(self.state)

    def present(self) -> list[str]:
        return sorted(self.cursors.keys() - self.parked)

    def fresh(self, rows: int) -> list[int]:
        self.number += rows
        return list(range(self.number - rows, self.number))

    @rule(stream=st.sampled_from(STREAMS), rows=SMALL, dead=st.integers(0, 2))
    def append(self, stream: str, rows: int, dead: int) -> None:
        new = self.fresh(rows)
        try:
            offsets = self.log.append(stream, table(new), source_position={"at": self.number}, dead=[{"n": 1}] * dead)
        except LogFull:
            waiting = [
                len(self.values[stream]) - cursor
                for reader, cursor in self.cursors.items()
                if READERS[reader] == stream and self.working[reader]
            ]
            assert max(waiting) > 0
            return
        end = len(self.values[stream])
        assert offsets == range(end, end + rows)
        self.values[stream] += new
        self.dead[stream] += dead
        self.positions[stream] = self.number

    @rule(reader=st.sampled_from(sorted(READERS)), at=st.sampled_from(["earliest", "latest"]))
    def start(self, reader: str, at: str) -> None:
        stream = READERS[reader]
        before = len(self.log.ledger())
        cursor = self.log.start_reader(reader, stream, at)  # type: ignore[arg-type]
        if reader in self.parked:
            # What came and went while it was out is told once, exactly.
            first, oldest = self.cursors[reader], self.log.oldest(stream)
            missed = [(loss.edge, loss.first, loss.end) for loss in self.log.ledger()[before:]]
            assert missed == ([(reader, first, oldest)] if first < oldest else [])
            self.cursors[reader] = max(first, oldest)
            self.parked.discard(reader)
            self.working[reader] = True
        elif reader not in self.cursors:
            self.cursors[reader] = self.log.oldest(stream) if at == "earliest" else len(self.values[stream])
            self.working[reader] = True
        assert cursor == self.cursors[reader]

    @precondition(lambda self: self.present())
    @rule(data=st.data(), take=SMALL, out=st.lists(st.tuples(st.sampled_from(STREAMS), SMALL), max_size=4))
    def commit(self, data: st.DataObject, take: int, out: list[tuple[str, int]]) -> None:
        reader = data.draw(st.sampled_from(self.present()))
        stream, first = READERS[reader], self.cursors[reader]
        end = min(first + take, len(self.values[stream]))
        with SegmentWriter(self.log.folder, f"unit-{self.log.epoch}-{self.number}-{data.draw(st.uuids())}") as writer:
            new = [(target, self.fresh(rows)) for target, rows in out]
            for target, values in new:
                writer.add(target, table(values))
            file = writer.finish()
        self.log.commit([Commit(((reader, stream, first, end),), (file,))])
        self.cursors[reader] = end
        for target, values in new:
            self.values[target] += values

    @precondition(lambda self: self.present())
    @rule(data=st.data(), off=st.sampled_from([-1, 1]))
    def wrong_commit(self, data: st.DataObject, off: int) -> None:
        reader = data.draw(st.sampled_from(self.present()))
        first = self.cursors[reader] + off
        with pytest.raises(CursorMoved):
            self.log.commit([Commit(((reader, READERS[reader], first, first),))])

    @precondition(lambda self: self.present())
    @rule(data=st.data(), take=SMALL)
    def advance(self, data: st.DataObject, take: int) -> None:
        reader = data.draw(st.sampled_from(self.present()))
        end = min(self.cursors[reader] + take, len(self.values[READERS[reader]]))
        self.log.advance(reader, READERS[reader], end, {"end": end})
        self.cursors[reader] = end
        assert self.log.reader_state(reader) == {"end": end}

    @precondition(lambda self: self.present())
    @rule(data=st.data(), needed=st.booleans())
    def quarantine(self, data: st.DataObject, needed: bool) -> None:
        reader = data.draw(st.sampled_from(self.present()))
        self.log.set_need(reader, needed)
        self.working[reader] = needed

    @precondition(lambda self: self.cursors)
    @rule(data=st.data())
    def park(self, data: st.DataObject) -> None:
        readers = data.draw(st.lists(st.sampled_from(sorted(self.cursors)), unique=True))
        self.log.park(readers)
        for reader in readers:
            self.parked.add(reader)
            self.working[reader] = False

    @precondition(lambda self: self.parked)
    @rule(data=st.data())
    def a_parked_reader_does_nothing(self, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from(sorted(self.parked)))
        stream, cursor = READERS[reader], self.cursors[reader]
        with pytest.raises(CursorMoved):
            self.log.commit([Commit(((reader, stream, cursor, cursor),))])
        with pytest.raises(CursorMoved):
            self.log.advance(reader, stream, cursor)
        with pytest.raises(FreshetError, match="parked"):
            self.log.set_need(reader, True)

    @precondition(lambda self: self.cursors)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from(sorted(self.cursors)))
        self.log.drop_reader(reader)
        del self.cursors[reader], self.working[reader]
        self.parked.discard(reader)

    @rule(seconds=st.integers(0, 3))
    def collect(self, seconds: int) -> None:
        self.now += seconds
        before = len(self.log.ledger())
        lost = self.log.collect().lost
        for loss in self.log.ledger()[before:]:
            assert not self.working[loss.edge]
            assert loss.edge not in self.parked
            assert self.cursors[loss.edge] == loss.first
            self.cursors[loss.edge] = loss.end
            lost -= loss.end - loss.first
        assert lost == 0
        self.check_that_nothing_is_held_for_parked_readers()
        known = {
            part.file
            for stream in STREAMS
            for part in self.log.train(stream, self.log.oldest(stream), self.log.end(stream)).segments
        }
        on_disk = {path.name for path in self.log.folder.iterdir()}
        assert known <= on_disk
        assert len(known) == self.log.meters().files

    def check_that_nothing_is_held_for_parked_readers(self) -> None:
        for stream, retention in self.log.streams().items():
            others = [at for name, at in self.cursors.items() if READERS[name] == stream and name not in self.parked]
            if retention.history_bytes == 0:
                kept = self.log.train(stream, self.log.oldest(stream), self.log.end(stream)).segments
                assert all(segment.end > min(others) for segment in kept) if others else not kept

    @rule()
    def reopen(self) -> None:
        epoch = self.log.epoch
        self.log.close()
        self.log = self.open()
        assert self.log.epoch == epoch + 1

    @invariant()
    def everything_kept_is_there_once_and_in_order(self) -> None:
        for stream in STREAMS if self.log.streams() else ():
            values = self.values[stream]
            for side in (self.log, self.reader):
                assert side is not None
                oldest, end = side.oldest(stream), side.end(stream)
                assert end == len(values)
                if oldest < end:
                    assert side.read(stream, oldest, end)["v"].to_pylist() == values[oldest:]
                if oldest:
                    with pytest.raises(Lagged):
                        side.read(stream, oldest - 1, end)

    @invariant()
    def readers_stand_where_they_should_and_can_read(self) -> None:
        assert {name: reader.next for name, reader in self.log.readers().items()} == self.cursors
        assert {name for name, reader in self.log.readers().items() if reader.parked} == self.parked
        assert {name for name, reader in self.log.readers().items() if reader.needed} == {
            name for name, working in self.working.items() if working
        }
        for reader, cursor in self.cursors.items():
            oldest = 0 if reader in self.parked else self.log.oldest(READERS[reader])
            assert oldest <= cursor <= self.log.end(READERS[reader])

    @invariant()
    def counts_are_right(self) -> None:
        meters = self.log.meters().streams
        for stream in meters:
            path = self.state / "dead" / f"{stream}.jsonl"
            lines = path.read_text().splitlines() if path.exists() else []
            assert meters[stream].dead == self.dead[stream] == len(lines)
            assert self.log.source_position(stream) == (
                {"at": self.positions[stream]} if stream in self.positions else None
            )


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
