"""The thread of a mirror that polls: many polls at the same time, within the budget and the limits of hosts."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from freshet.mirror.allowance import Allowance
from freshet.sources.mirror.audit import Audits
from freshet.sources.mirror.backoff import BackOff
from freshet.sources.mirror.book import MirrorBook
from freshet.sources.mirror.known import KnownElement
from freshet.sources.mirror.options import MirrorOptions
from freshet.sources.mirror.polling.answer import Fetcher, PollAnswer, PollFailed, Spend
from freshet.sources.mirror.polling.content import shown_reason
from freshet.sources.mirror.polling.hosts import HostGate

_LOGGER: Final = logging.getLogger(__name__)
_TICK: Final = 0.005
"""Seconds between looks at what is due while there is something to do."""
_REST: Final = 0.05
"""Maximum number of seconds between looks otherwise."""
_ROOM: Final = 1000
"""Maximum number of elements that become due at once."""
_LOOK: Final = 1.0
"""Seconds between looks for new elements."""
MOST_UNSAVED: Final = 20_000
"""Maximum number of changes that wait for the log; beyond it, nothing is polled."""


class _Paid(NamedTuple):
    """A request that was paid for: its numbers in the budget, and in the limit of its host, where they count."""

    poll: int | None
    host: int | None


class Poller:
    """Polls what is due.

    Args:
        options: Of the mirror.
        book: What is known of elements; it is used under :attr:`lock`.
        make_fetcher: Makes what polls, on the thread of the polls.
        look: Looks for new elements; called under the lock.
    """

    def __init__(
        self, options: MirrorOptions, book: MirrorBook, make_fetcher: Callable[[], Fetcher], look: Callable[[], None]
    ) -> None:
        self._options, self._book, self._make_fetcher, self._look = options, book, make_fetcher, look
        self.lock = threading.Lock()
        """Guards the book."""
        self.error: BaseException | None = None
        """What ended the thread."""
        self._allowance = Allowance(options.spendable)
        self._reserved = 0.0
        self.spent = 0.0
        """What this run has spent of its budget."""
        self.audits = Audits(0.0)
        self._gate = HostGate(options.connections)
        self._hosts: dict[str, Allowance] = {}
        self._back_off = BackOff(options.back_off, options.longest_back_off)
        self._waiting: defaultdict[str, deque[int]] = defaultdict(deque)
        self._under_way: set[int] = set()
        self._intended: set[int] = set()
        self._audited: Counter[int] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = threading.Event()
        self._next_look = 0.0
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; polls that are under way are given up."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(5.0)

    @property
    def waiting(self) -> int:
        """Number of elements that are due and wait for their host."""
        return sum(len(each) for each in list(self._waiting.values()))

    @property
    def held_back(self) -> bool:
        """Whether polls wait until it is committed that they are made."""
        return bool(self._intended)

    def closed_hosts(self) -> dict[str, float]:
        """Hosts that asked to be left alone, with the time until which, in seconds since the epoch."""
        wall = time.time()
        return {host: wall + left for host, left in self._gate.closed(time.monotonic()).items()}

    def close_hosts(self, until: Mapping[str, float]) -> None:
        """Takes back what :meth:`closed_hosts` gave, perhaps in an earlier run."""
        now, wall = time.monotonic(), time.time()
        for host, each in until.items():
            self._gate.close_until(host, now + each - wall)

    def leave_closed(self) -> None:
        """Makes plans without the elements of hosts that asked to be left alone; the lock is held."""
        closed = self._gate.closed(time.monotonic())
        self._book.schedule.failing(n for n, known in enumerate(self._book.elements) if known.host in closed)

    def _run(self) -> None:
        try:
            asyncio.run(self._poll())
        except BaseException as error:
            self.error = error
            _LOGGER.debug("a mirror failed", exc_info=True)

    async def _poll(self) -> None:
        fetcher = self._make_fetcher()
        try:
            while not self._stopping.is_set():
                begun = self._turn(fetcher)
                await asyncio.sleep(_TICK if begun or self._under_way or self._waiting else self._rest())
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await fetcher.close()

    def _rest(self) -> float:
        """Seconds until something may be due. A small budget has no room for polls that are late: they are not made
        up for."""
        with self.lock:
            return min(max(self._book.schedule.wait(time.time()), _TICK), _REST)

    def _turn(self, fetcher: Fetcher) -> int:
        """Begins what is due, as far as the budget and the hosts allow; returns the number of polls."""
        now, wall = time.monotonic(), time.time()
        with self.lock:
            if now >= self._next_look:
                self._next_look = now + _LOOK
                self._look()
                self.audits.rate = self._options.audit * self._options.spendable / self._mean_cost()
            if len(self._book.unsaved.changes) >= MOST_UNSAVED:
                return 0
            self._enlist(now, wall)
            return sum(self._begin(host, fetcher, now) for host in list(self._waiting))

    def _enlist(self, now: float, wall: float) -> None:
        """Puts what is due into the queues of its hosts."""
        for number in self._book.schedule.due(wall, _ROOM):
            if (until := self._book.elements[number].not_before) > wall:
                self._book.schedule.failed(number, until)
            else:
                self._want(number, wall)
        ready = [number for number in self._intended if self._book.elements[number].may_be_polled(wall)]
        self.poll_first(ready)
        self._intended.difference_update(ready)
        for number in self.audits.draw(now, self._worths):
            self._book.intend(number)
        for number in self.audits.due(now):
            self._audit(number, now, wall)

    def _want(self, number: int, wall: float) -> None:
        """Queues an element, or waits until it is committed that it is polled."""
        if number in self._under_way:
            return
        self._under_way.add(number)
        known = self._book.elements[number]
        if known.may_be_polled(wall):
            self._waiting[known.host].append(number)
        else:
            self._book.intend(number)
            self._intended.add(number)

    def poll_first(self, numbers: Iterable[int]) -> None:
        """Puts elements before all others of their hosts."""
        for number in numbers:
            self._under_way.add(number)
            self._waiting[self._book.elements[number].host].appendleft(number)

    def _worths(self) -> list[float]:
        return [0.0 if each.gone else each.worth for each in self._book.elements]

    def _audit(self, number: int, now: float, wall: float) -> None:
        """The moment of an audit has come: its element is polled before all others, or counts as not fresh if it must
        be left alone. An audit that is not committed yet is not made: later, the copy would be older."""
        known = self._book.elements[number]
        if known.gone:
            return
        if known.not_before > wall or self._gate.is_closed(known.host, now):
            self._count_audit(fresh=False)
        elif known.saved_intent:
            self._audited[number] += 1
            if number in self._waiting.get(known.host, ()):
                self._waiting[known.host].remove(number)
            elif number in self._under_way:  # its answer is on the way
                return
            self.poll_first([number])

    def _count_audit(self, fresh: bool) -> None:
        self.audits.met(fresh)
        self._book.counts["audits"] += 1
        self._book.counts["audits_fresh"] += fresh

    def _end_audits(self, number: int, fresh: bool) -> None:
        """Counts the audits that waited for an answer of an element; it stays intended if another one is to come."""
        for _ in range(self._audited.pop(number, 0)):
            self._count_audit(fresh)
        if self.audits.awaits(number):
            self._book.intend(number)

    def _begin(self, host: str, fetcher: Fetcher, now: float) -> int:
        queue, begun = self._waiting[host], 0
        for _ in range(len(queue)):
            number = queue[0]
            cost = self._cost(number)
            if not self._may(host, now, cost):
                break
            suspect = self._book.elements[number].failures > 0
            ticket = self._gate.enter(host, now, suspect)
            if ticket is None and suspect:
                queue.rotate(-1)  # the next element of the host may be none
                continue
            if ticket is None:
                break
            queue.popleft()
            paid = self._pay(host, now, cost)
            self._launch(self._one(number, host, ticket, cost, paid, fetcher))
            begun += 1
        if not queue:
            del self._waiting[host]
        return begun

    def _launch(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _cost(self, number: int) -> float:
        """What a request is expected to take from the budget."""
        return 1.0 if self._options.budget is not None else self._book.elements[number].expected_size

    def _mean_cost(self) -> float:
        elements = self._book.elements
        if self._options.budget is not None or not elements:
            return 1.0
        return sum(each.expected_size for each in elements) / len(elements)

    def _may(self, host: str, now: float, cost: float) -> bool:
        limit = self._options.host_polls
        if limit is not None and not self._hosts.setdefault(host, Allowance(limit)).affords(now, 1.0):
            return False
        return self._allowance.affords(now, cost + self._reserved)

    def _pay(self, host: str, now: float, cost: float) -> _Paid:
        """A request begins. Polls are paid for now; bytes are reserved, and paid for when it is known how many came."""
        self._book.counts["polls"] += 1
        hosts = self._hosts[host].begin(now, 1.0) if host in self._hosts else None
        if self._options.budget is None:
            self._reserved += cost
            return _Paid(None, hosts)
        self.spent += cost
        return _Paid(self._allowance.begin(now, cost), hosts)

    async def _one(self, number: int, host: str, ticket: int, cost: float, first: _Paid, fetcher: Fetcher) -> None:
        """One poll, from its request to the book."""
        moved = 0
        known, paid = self._book.elements[number], [first]

        async def spend() -> None:
            while not self._may(host, time.monotonic(), cost):
                await asyncio.sleep(_TICK)
            paid.append(self._pay(host, time.monotonic(), cost))

        try:
            answer = await _asked(fetcher, known, spend)
            moved = answer.moved if isinstance(answer, PollFailed) else answer.bytes
            self._enter(number, host, answer)
        except Exception as error:
            # Not the element's fault: the source says so and ends.
            self.error = error
            self._stopping.set()
        finally:
            self._settle(host, paid, cost, moved)
            self._gate.end(host, ticket)
            self._under_way.discard(number)

    def _enter(self, number: int, host: str, answer: PollAnswer | PollFailed) -> None:
        if isinstance(answer, PollFailed):
            self._failed(number, host, answer)
            return
        with self.lock:
            changed = self._book.answered(number, time.time(), answer)
            self._end_audits(number, not changed)

    def _failed(self, number: int, host: str, failure: PollFailed) -> None:
        known = self._book.elements[number]
        wait = self._back_off.seconds(known.failures + 1, failure.retry_after)
        with self.lock:
            if failure.whole_host and failure.retry_after is not None:
                was_closed = self._gate.is_closed(host, now := time.monotonic())
                self._gate.close_until(host, now + failure.retry_after)
                if not was_closed:
                    self.leave_closed()
                for waiting in self._waiting.get(host, ()):
                    self._end_audits(waiting, fresh=False)
            self._book.failed(number, failure, time.time() + wait)
            self._end_audits(number, fresh=False)

    def _settle(self, host: str, paid: Sequence[_Paid], cost: float, moved: int) -> None:
        now = time.monotonic()
        for each in paid:
            if each.poll is not None:
                self._allowance.end(now, each.poll)
            if each.host is not None:
                self._hosts[host].end(now, each.host)
        if self._options.budget is None:
            self._reserved = max(0.0, self._reserved - len(paid) * cost)
            self._allowance.charge(now, float(moved))
            self.spent += moved


async def _asked(fetcher: Fetcher, known: KnownElement, spend: Spend) -> PollAnswer | PollFailed:
    try:
        return await fetcher.fetch(known.name, known.validator, spend)
    except PollFailed as failure:
        return failure
    except Exception as error:  # one element must not end the polls of the others
        _LOGGER.debug("a poll of %s failed", known.name, exc_info=True)
        return PollFailed(shown_reason(error))
