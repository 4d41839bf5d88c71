"""Moving a query from one set of readers to another: its cursors, what waits for it, what is known of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from freshet.app.forms import Input, inputs_of
from freshet.engine.queues import QUEUE
from freshet.log import Log, QueryRecord, ReaderState, Rearrangement
from freshet.model import QueryGraph, SegmentFile
from freshet.model.operators import earliest


class Move:
    """A change of readers that becomes true as a whole.

    Args:
        log: Of which nobody reads meanwhile.
        stays: Readers that others need.
    """

    def __init__(self, log: Log, stays: Collection[str] = ()) -> None:
        self._log, self._stays = log, set(stays)
        self._left: set[str] = set()
        self._readers = log.readers()
        self._gone: dict[str, None] = {}
        self._come: dict[str, ReaderState] = {}
        self._marks: list[tuple[str, int]] = []
        self._files: list[SegmentFile] = []
        self._queries: dict[str, QueryRecord | None] = {}

    def start(self, reader: ReaderState) -> None:
        """A reader comes; one of its name goes."""
        if reader.name in self._readers:
            self.drop(reader.name)
        self._come[reader.name] = reader

    def drop(self, reader: str) -> None:
        """A reader goes, and the queue that it alone reads."""
        if reader in self._readers:
            self._gone[reader] = None

    def know(self, query: str, record: QueryRecord | None) -> None:
        """What is known of a query from then on."""
        self._queries[query] = record

    def place(self, target: Input, sources: Sequence[ReaderState | None], like: ReaderState) -> None:
        """Gives an input what others have not read yet.

        Args:
            target: The input.
            sources: For a stream the reader whose cursor it takes over; for a queue those of the queues that come
                together in it, None for one that does not exist.
            like: A reader that is at work, quarantined or parked as it shall be.
        """
        if not target.is_queue:
            [source] = sources
            if source is not None:  # else it has never been at work, and begins where it is to begin
                self.start(ReaderState(target.reader, target.stream, source.next, like.needed, parked=like.parked))
            return
        waiting = [each for each in sources if each is not None and each.next < self._log.end(each.stream)]
        if waiting:
            at = self._copy(target.stream, waiting, whole=len(waiting) == len(sources))
            # What is in a queue is nowhere else: it is held even while the query is out.
            self.start(ReaderState(target.reader, target.stream, at, like.needed))

    def _copy(self, queue: str, sources: Sequence[ReaderState], whole: bool) -> int:
        """Has what waits in queues written to another one; returns where that begins."""
        log = self._log
        log.declare(queue, QUEUE, kind="queue")
        self._files += log.copied((log.train(each.stream, each.next, log.end(each.stream)) for each in sources), queue)
        mark = earliest([log.watermark(each.stream, each.next) for each in sources])
        # Tuples of a source of which nothing waits may still come, and nobody knows here from when they are.
        if whole and mark is not None:
            self._marks.append((queue, mark))
        return log.end(queue)

    def shift(self, old: QueryGraph, new: QueryGraph, like: ReaderState) -> None:
        """Brings a query from one form to another of the same shape.

        Args:
            old: The form that it has.
            new: The form that it gets.
            like: A reader that is at work, quarantined or parked as its readers shall be.
        """
        for before, after in zip(inputs_of(old), inputs_of(new), strict=True):
            if before.reader != after.reader and after.reader not in self._stays:
                self.place(after, [self._readers.get(before.reader)], like)
            self._left.add(before.reader)
        self._stays |= {each.reader for each in inputs_of(new)} - self._come.keys()

    def commit(self) -> None:
        """Makes it true."""
        for name in self._left - self._stays - self._come.keys():
            self.drop(name)
        gone = [self._readers[name] for name in self._gone]
        left = {reader.stream for name, reader in self._readers.items() if name not in self._gone}
        left |= {reader.stream for reader in self._come.values()}
        unread = {reader.stream for reader in gone if self._log.kind(reader.stream) in ("queue", "state")} - left
        drop = tuple(reader.name for reader in gone if reader.stream not in unread)
        come, files = tuple(self._come.values()), tuple(file for file in self._files if file.members)
        self._log.rearrange(Rearrangement(tuple(unread), drop, come, tuple(self._marks), files, self._queries))
