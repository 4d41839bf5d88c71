"""The book of a mirror: what is known of all elements, what polls found, and what is to be committed of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from freshet.log import Malformed
from freshet.sources.mirror.change_time import estimated_change
from freshet.sources.mirror.elements import NamedElement
from freshet.sources.mirror.known import KnownElement
from freshet.sources.mirror.options import MirrorOptions
from freshet.sources.mirror.polling.answer import PollAnswer, PollFailed
from freshet.sources.mirror.polling.content import Content, ContentRow, fingerprint
from freshet.sources.mirror.schedule import PollSchedule
from freshet.sources.mirror.status import ElementRate

COUNTS: Final = ("polls", "changes", "bytes", "failures", "audits", "audits_fresh")
"""What is counted over all runs."""
_REMEMBERED: Final = 100_000
"""Maximum number of refused names that are remembered."""


@dataclass(frozen=True, slots=True)
class FoundChange:
    """The rows of an element since a change; or, without a name, something that may not be polled."""

    element: str | None
    rows: list[ContentRow]


@dataclass(slots=True)
class Unsaved:
    """What polls found and the log does not have yet."""

    changes: list[FoundChange] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)
    gone: list[str] = field(default_factory=list)


class MirrorBook:
    """Enters answers and failures. One thread at a time may use it.

    Args:
        options: Of the mirror.
        columns: Columns of the stream.
        content: How rows are read from what elements hold.
        schedule: When elements are polled; it hears of every answer.
    """

    def __init__(
        self, options: MirrorOptions, columns: Sequence[str], content: Content, schedule: PollSchedule
    ) -> None:
        self._content, self.schedule = content, schedule
        told = (options.element_column, options.polled_column, options.changed_column)
        self._told = [name if name in columns else None for name in told]
        self.elements: list[KnownElement] = []
        self.numbers: dict[str, int] = {}
        self.unsaved = Unsaved()
        self.counts = dict.fromkeys(COUNTS, 0)
        self.refused = 0
        self._refused: dict[str, None] = {}
        self._taken: dict[str, Any] = {}

    def add(self, found: Iterable[tuple[NamedElement, str]], now: float) -> None:
        """Adds elements with their hosts, or changes what is given of those that are known."""
        new = list[KnownElement]()
        for element, host in found:
            number = self.numbers.get(element.name)
            if number is None:
                new.append(_new(element, host))
                continue
            known = self.elements[number]
            if known.gone or known.given != element.worth:
                known.worth, known.given, known.gone = element.worth, element.worth, False
                self.schedule.set_worth(number, element.worth)
                self.unsaved.touched.add(number)
            if known.rate != element.rate:
                known.rate = element.rate
                self.schedule.set_rate(number, known)
                self.unsaved.touched.add(number)
            if (known.least_freshness, known.greatest_age) != (element.least_freshness, element.greatest_age):
                known.least_freshness, known.greatest_age = element.least_freshness, element.greatest_age
                self.schedule.set_floor(number, known)
                self.unsaved.touched.add(number)
        self._enter(new, now)

    def weigh(self, factors: Sequence[float], alike: float = 0.0) -> None:
        """Each element is worth what was given times a factor; changes by up to the share ``alike`` do not count."""
        changed = False
        for number, (known, factor) in enumerate(zip(self.elements, factors, strict=True)):
            worth = 0.0 if known.gone else known.given * factor
            if abs(worth - known.worth) > alike * known.worth:
                known.worth, changed = worth, True
                self.unsaved.touched.add(number)
        if changed:
            self.schedule.weigh([known.worth for known in self.elements])

    def recall(
        self, records: Mapping[str, Mapping[str, Any]], hosts: Mapping[str, str], common: Any, now: float
    ) -> None:
        """Enters what was committed by earlier runs, of each element and of all together; before anything else."""
        self._enter([KnownElement.of(name, hosts[name], record) for name, record in records.items()], now)
        self.unsaved.touched.clear()
        learned = [record["learned"] for record in records.values()]
        self.schedule.restore(learned, [record["due"] for record in records.values()], common, now)
        self.schedule.failing(number for number, known in enumerate(self.elements) if known.failures)

    def read_anew(self) -> None:
        """Elements are read otherwise than before: that an element is the same does not say that its values are."""
        for number, known in enumerate(self.elements):
            known.validator = {}
            self.unsaved.touched.add(number)

    def _enter(self, new: Sequence[KnownElement], now: float) -> None:
        if not new:
            return
        first = len(self.elements)
        self.numbers |= {known.name: first + place for place, known in enumerate(new)}
        self.elements += new
        self.schedule.add(new, now)
        self.unsaved.touched.update(range(first, len(self.elements)))

    def drop(self, names: Iterable[str]) -> None:
        """Elements that are not polled any more."""
        for name in names:
            known = self.elements[self.numbers[name]]
            if not known.gone:
                known.gone, known.worth = True, 0.0
                self.schedule.set_worth(self.numbers[name], 0.0)
                self.unsaved.gone.append(name)

    def refuse(self, text: str, reason: str) -> None:
        """Something that was given as an element may not be polled: a dead letter, the first time."""
        if text in self._refused:
            return
        if len(self._refused) >= _REMEMBERED:
            del self._refused[next(iter(self._refused))]
        self._refused[text] = None
        self.refused += 1
        self.unsaved.changes.append(FoundChange(None, [Malformed(text, reason)]))

    def answered(self, number: int, now: float, answer: PollAnswer) -> bool:
        """Enters an answer; returns whether the element has changed since the poll before."""
        known = self.elements[number]
        if known.gone:
            self.schedule.failed(number, math.inf)
            return False
        rows = [] if answer.same else self._content.rows(answer)
        mark = known.fingerprint if answer.same else fingerprint(rows)
        changed = mark != known.fingerprint
        if changed:
            self._changed(number, now, rows, answer.modified)
        known.fingerprint, known.validator = mark, answer.validator
        known.polled, known.polls = now, known.polls + 1
        known.failures, known.reason, known.not_before, known.intended = 0, None, 0.0, False
        known.moved(answer.bytes)
        self.counts["bytes"] += answer.bytes
        self.unsaved.touched.add(number)
        self.schedule.set_size(number, known)
        self.schedule.polled(number, now, changed, answer.modified)
        return changed

    def intend(self, number: int) -> None:
        """An element is to be polled although it is not due; it may be once that is committed."""
        if not self.elements[number].intended:
            self.elements[number].intended = True
            self.unsaved.touched.add(number)

    def failed(self, number: int, failure: PollFailed, until: float) -> None:
        """Enters a failure; the element keeps its values and is not polled before a time."""
        known = self.elements[number]
        known.failures, known.reason, known.not_before = known.failures + 1, str(failure), until
        known.intended = False
        self.counts["bytes"] += failure.moved
        self.counts["failures"] += 1
        self.unsaved.touched.add(number)
        self.schedule.failed(number, until)

    def _changed(self, number: int, now: float, rows: Sequence[ContentRow], modified: float | None) -> None:
        known = self.elements[number]
        known.changes += known.polled is not None
        self.counts["changes"] += known.polled is not None
        time = estimated_change(known.polled, now, self.schedule.rate(number), modified)
        told = (known.name, _moment(now), _moment(time))
        more = {name: value for name, value in zip(self._told, told, strict=True) if name is not None}
        full = [row if isinstance(row, Malformed) else {**row, **more} for row in rows]
        self.unsaved.changes.append(FoundChange(known.name, full))

    def rates(self, now: float, limit: int | None = None) -> list[ElementRate]:
        """What is known of elements, those that are polled most often first."""
        found, planned = self.schedule.rates().tolist(), self.schedule.frequencies().tolist()
        order = sorted((n for n, each in enumerate(self.elements) if not each.gone), key=lambda n: -planned[n])
        return [self.elements[n].told(found[n], planned[n], now) for n in order[:limit]]

    def take(self) -> tuple[list[FoundChange], dict[str, Any]]:
        """Changes and records that are to be committed together."""
        unsaved, self.unsaved = self.unsaved, Unsaved()
        touched = [number for number in sorted(unsaved.touched) if not self.elements[number].gone]
        learned = self.schedule.records(touched)
        records: dict[str, Any] = dict.fromkeys(unsaved.gone)
        for number, (row, due) in zip(touched, learned, strict=True):
            known = self.elements[number]
            records[known.name] = {**known.record(), "learned": row, "due": due}
        self._taken = records
        return unsaved.changes, records

    def committed(self) -> None:
        """What was taken last is durable."""
        for name, record in self._taken.items():
            if record is not None:
                self.elements[self.numbers[name]].saved(record)
        self._taken = {}


def _new(element: NamedElement, host: str) -> KnownElement:
    return KnownElement(
        element.name, host, element.worth, element.rate, given=element.worth, least_freshness=element.least_freshness,
        greatest_age=element.greatest_age,
    )  # fmt: skip


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
