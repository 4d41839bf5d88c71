"""The source kind ``mirror``: elements that are polled as often as it pays, and rows for what has changed."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from freshet.log.readable import Readable
from freshet.mirror import Elements
from freshet.mirror.floors import Floors
from freshet.model import FreshetError, Stream, UserError
from freshet.model.messages import sentence
from freshet.sources.mirror.book import COUNTS, FoundChange, MirrorBook
from freshet.sources.mirror.elements import FileElements, ListedElements, NamedElement, QueryElements, element_source
from freshet.sources.mirror.options import MirrorOptions
from freshet.sources.mirror.poller import Poller
from freshet.sources.mirror.polling.answer import Fetcher
from freshet.sources.mirror.polling.content import Content
from freshet.sources.mirror.polling.file import FileFetcher
from freshet.sources.mirror.polling.hosts import AllowedHosts
from freshet.sources.mirror.polling.http import HttpFetcher
from freshet.sources.mirror.polling.sql import SqlFetcher, is_sqlite
from freshet.sources.mirror.readers import MirrorReader
from freshet.sources.mirror.schedule import PollSchedule
from freshet.sources.mirror.status import ElementRate, MirrorStatus
from freshet.sources.mirror.worth import ElementWorth
from freshet.sources.source import Batch
from freshet.sources.times import event_seconds

_SAVE_ROWS: Final = 0.1
"""Seconds between commits while there are rows, or polls that wait for a commit."""
_SAVE_RECORDS: Final = 1.0
"""Seconds between commits of what was learned by polls that found nothing new."""
_THREADS: Final = 256
"""Maximum number of threads for polls of files and databases: one that hangs must not keep others waiting."""
_EXAMPLES: Final = 5


@dataclass(frozen=True, slots=True)
class Found:
    """What polls have found; it is to be committed together.

    Args:
        changes: In the order of the polls.
        position: What is counted over all runs, how far elements were read, and which hosts are to be left alone.
        records: What is known of each element; None for one that is gone.
    """

    changes: list[FoundChange]
    position: dict[str, Any]
    records: dict[str, Any]


class MirrorSource:
    """Polls elements within a budget; a change is a row.

    A thread of its own polls. What it found is committed in one transaction: the rows, and for each polled element what
    is known of it (its validator, its change rate and when it is due). So a change that was committed is never found
    again, and one that was not is found by the next poll.

    Args:
        options: See :class:`MirrorOptions`.
        stream: The stream that gets the rows.
    """

    def __init__(self, options: MirrorOptions, stream: Stream) -> None:
        self._options, self._stream = options, stream
        self._elements = element_source(options.elements)
        self._executor: ThreadPoolExecutor | None = None
        self._check_columns()
        self._judge = self._make_fetcher()
        schedule = PollSchedule(options)
        self._book = MirrorBook(options, stream.schema.names, self._content(), schedule)
        named = options.element_column
        self._worth = ElementWorth(options, stream.schema.field(named) if named in stream.schema.names else None)
        self._poller = Poller(options, self._book, self._make_fetcher, self._look)
        self._recalled: Mapping[str, Any] = {}
        self._common: Any = None
        self._began: float | None = None
        self._saved_at = self._quiet_since = 0.0
        self._first_look = True
        self._reading = self._how_read()
        self._read_otherwise = False

    def _how_read(self) -> str:
        """Differs if another content may come from the same elements."""
        reading = self._options.model_dump_json(include={"http", "file", "sql", "format", "columns"})
        return hashlib.blake2b(f"{self._filled} {reading}".encode(), digest_size=12).hexdigest()

    def _check_columns(self) -> None:
        own = {self._options.element_column, self._options.polled_column, self._options.changed_column}
        for name in self._options.columns:
            if name not in self._stream.schema.names or name in own:
                raise UserError(f"columns.{name} is not a column of stream {self._stream.name} that elements fill")
        self._filled = [name for name in self._stream.schema.names if name not in own]
        if self._options.format == "text" and len(self._filled) > 1:
            raise UserError(f"text fills one column, and there are {', '.join(self._filled)}")

    def _content(self) -> Content:
        exact = any(pa.types.is_decimal(kind) for kind in self._stream.schema.types)
        places = {name: self._options.columns.get(name, name) for name in self._filled}
        return Content(self._options.format, places, self._filled[0] if len(self._filled) == 1 else None, exact)

    def _make_fetcher(self) -> Fetcher:
        options = self._options
        if options.http is not None:
            return HttpFetcher(
                AllowedHosts([*options.http.hosts, *self._named_hosts()]), options.http.url,
                headers=options.http.headers, timeout=options.timeout, max_bytes=options.max_bytes,
                redirects=options.http.redirects,
            )  # fmt: skip
        if self._executor is None:
            self._executor = ThreadPoolExecutor(_THREADS, f"mirror-{self._stream.name}")
        if options.file is not None:
            return FileFetcher(options.file.path.expanduser(), self._executor, options.timeout, options.max_bytes)
        assert options.sql is not None
        sql = options.sql
        return SqlFetcher(sql.database, sql.query, sql.change_key, self._executor, options.timeout)

    def _named_hosts(self) -> Iterable[str]:
        """Hosts that the application file itself names: in the address of all elements, or in a list of addresses."""
        http = self._options.http
        assert http is not None
        if http.url is not None:
            host = urlsplit(http.url).netloc.rpartition("@")[2]
            return () if "{element}" in host else (host,)
        if not isinstance(self._options.elements, list):
            return ()
        names = [each if isinstance(each, str) else each.element for each in self._options.elements]
        return {urlsplit(name).netloc.rpartition("@")[2] for name in names}

    def check(self) -> None:
        """Checks what can be checked without a poll.

        Raises:
            UserError: An element of the list or the file may not be polled, or the file cannot be read.
        """
        elements = self._elements
        if isinstance(elements, ListedElements):
            for each in elements.news().present:
                self._judge.check(each.name)
        elif isinstance(elements, FileElements):
            elements.read()
        if self._options.http is not None and "{element}" not in (self._options.http.url or "{element}"):
            raise UserError("http.url has no {element}: every element would be the same")
        self._check_place()
        self._check_floors()

    def _check_place(self) -> None:
        """Refuses a folder or a database that is not there."""
        options = self._options
        if options.file is not None and not options.file.path.expanduser().is_dir():
            raise UserError(f"file.path: there is no folder {options.file.path}")
        if options.sql is not None and is_sqlite(options.sql.database) and not Path(options.sql.database).is_file():
            raise UserError(f"sql.database: there is no file {options.sql.database}")

    def _check_floors(self) -> None:
        """Refuses floors that need more than the budget, as far as the rates are given."""
        if isinstance(self._elements, QueryElements) or self._options.budget is None:
            return
        rate = None if self._options.learn else 1.0 / self._options.change_every
        given = [(each, each.rate or rate) for each in self._elements.given()]
        known = [(each, rate) for each, rate in given if rate is not None]
        ages = [math.inf if each.greatest_age is None else each.greatest_age for each, _ in known]
        promised = Floors(np.array([each.least_freshness for each, _ in known]), np.array(ages))
        elements = Elements.of([rate for _, rate in known], [each.worth for each, _ in known])
        _, needed = promised.within(elements, math.inf)
        if needed > self._options.planned:
            least = needed * self._options.rate / self._options.planned
            raise UserError(f"the floors need a budget of at least {least:.4g}, and it is {self._options.rate:g}")

    def read_from(self, log: Readable) -> None:
        if isinstance(self._elements, QueryElements):
            self._elements.read_from(log)
        self._worth.read_from(log)

    def read_by(self, readers: Iterable[MirrorReader]) -> None:
        """Says which queries read the mirror from now on; their weights count if ``worth`` says so."""
        self._worth.read_by(readers)

    def restore(self, position: Mapping[str, Any]) -> None:
        self._common = position.get("learned")
        self._book.counts |= {name: position.get(name, 0) for name in COUNTS}
        if isinstance(self._elements, QueryElements):
            self._elements.next = position.get("offset", 0)
        self._worth.restore(position)
        # Earlier versions did not say how elements were read.
        self._read_otherwise = position.get("reading", self._reading) != self._reading
        # Earlier versions kept no such thing.
        self._poller.close_hosts(position.get("closed", {}))

    def recall(self, records: Mapping[str, Any]) -> None:
        self._recalled = records

    def poll(self, now: float) -> Batch | None:
        found = self.found(now)
        if found is None:
            return None
        rows = [row for change in found.changes for row in change.rows]
        arrivals = np.full(len(rows), round(now * 1e6), np.int64)
        return Batch(rows, arrivals, found.position, records=found.records)

    def found(self, now: float) -> Found | None:
        """What polls have found since the last call; None: nothing that has to be committed by now.

        Call it again only when what it returned is durable.
        """
        if self._began is None:
            self._begin(now)
        if self._poller.error is not None:
            raise FreshetError(f"the polls ended: {sentence(self._poller.error)}")
        with self._poller.lock:
            # Whoever asks again has committed what was found before.
            self._book.committed()
            unsaved = self._book.unsaved
            if not unsaved.changes:
                self._quiet_since = now
            pause = _SAVE_ROWS if unsaved.changes or self._poller.held_back else _SAVE_RECORDS
            if now - self._saved_at < pause or not (unsaved.changes or unsaved.touched or unsaved.gone):
                return None
            changes, records = self._book.take()
            found = Found(changes, self._position(), records)
        self._saved_at = now
        return found

    def _begin(self, now: float) -> None:
        self._began = now
        usable = {name: record for name, record in self._recalled.items() if self._allowed(name)}
        hosts = {name: self._judge.host(name) for name in usable}
        with self._poller.lock:
            self._book.recall(usable, hosts, self._common, now)
            if self._read_otherwise:
                self._book.read_anew()
            self._poller.leave_closed()
            intended = enumerate(self._book.elements)
            self._poller.poll_first([n for n, each in intended if each.intended and each.not_before <= now])
            self._book.unsaved.gone += [name for name in self._recalled if name not in usable]
        self._recalled = {}
        self._poller.start()

    def _allowed(self, name: str) -> bool:
        try:
            self._judge.check(name)
        except UserError:
            return False
        return True

    def _look(self) -> None:
        """Takes up new elements."""
        news, book = self._elements.news(), self._book
        for text, reason in news.refused:
            book.refuse(text, reason)
        found = list[tuple[NamedElement, str]]()
        for each in news.present:
            try:
                self._judge.check(each.name)
                found.append((each, self._judge.host(each.name)))
            except UserError as error:
                book.refuse(each.name, str(error))
        book.add(found, time.time())
        gone = set(news.gone) & book.numbers.keys()
        if self._first_look and news.present and not isinstance(self._elements, QueryElements):
            # What earlier runs polled and nobody names any more.
            gone |= book.numbers.keys() - {each.name for each in news.present}
        self._first_look = self._first_look and not news.present
        book.drop(gone)
        self._worth.look(book, time.time(), again=bool(found or gone))
        book.schedule.replan(time.time())

    def _position(self) -> dict[str, Any]:
        offset = {"offset": self._elements.next} if isinstance(self._elements, QueryElements) else {}
        closed = {"closed": closed} if (closed := self._poller.closed_hosts()) else {}
        common = self._book.schedule.common()
        return {
            **self._book.counts, **offset, **self._worth.position, **closed, "learned": common,
            "reading": self._reading,
        }  # fmt: skip

    def next_due(self) -> float | None:
        return max(self._saved_at, self._quiet_since) + _SAVE_ROWS

    def event_clock(self, now: float) -> float | None:
        """The time of polls, if that is the stream's event time: rows that come later were polled later."""
        if self._stream.event_time != self._options.polled_column:
            return None
        return event_seconds(self._quiet_since, self._stream)

    def close(self) -> None:
        self._poller.stop()
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)

    @property
    def status(self) -> MirrorStatus:
        """Figures for the report."""
        with self._poller.lock:
            return self._status(time.time())

    def _status(self, now: float) -> MirrorStatus:
        book, counts = self._book, self._book.counts
        present = [each for each in book.elements if not each.gone]
        failing = [each for each in present if each.failures]
        lived = 0.0 if self._began is None else max(now - self._began, 1e-3)
        audits = self._poller.audits
        audits.count, audits.fresh = counts["audits"], counts["audits_fresh"]
        return MirrorStatus(
            elements=len(present),
            unit="polls" if self._options.budget is not None else "bytes",
            budget_per_s=self._options.rate,
            budget_used=self._poller.spent / (self._options.rate * lived) if lived else 0.0,
            polls=counts["polls"],
            changes=counts["changes"],
            bytes=counts["bytes"],
            failures=counts["failures"],
            failing=len(failing),
            failing_examples={each.name: each.reason or "" for each in failing[:_EXAMPLES]},
            refused=book.refused,
            waiting=self._poller.waiting,
            freshness=book.schedule.freshness(now),
            freshness_planned=book.schedule.planned,
            freshness_audited=audits.freshness,
            freshness_audited_error=audits.error,
            audits=audits.count,
            floors_need_per_s=book.schedule.floors_need,
        )

    def rates(self, limit: int | None = None) -> list[ElementRate]:
        """What is known of elements, those that are polled most often first."""
        with self._poller.lock:
            return self._book.rates(time.time(), limit)
