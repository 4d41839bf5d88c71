"""The pool of residents: who is there, who is idle, and what they answer. It belongs to the engine's thread."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from pyspark.sql import SparkSession

from freshet.engine.clock import Waker
from freshet.quality.snapshots import ResidentPlace
from freshet.spark.driver.residents.departures import Departures
from freshet.spark.driver.residents.listener import Listener, Newcomer
from freshet.spark.driver.residents.relief import Relief
from freshet.spark.driver.residents.room import ElasticRoom, FixedRoom, Room
from freshet.spark.driver.residents.scheduler import RESIDENT_GROUP
from freshet.spark.driver.residents.seat import Presence, Seat
from freshet.spark.driver.residents.slots import is_elastic, take_slots
from freshet.spark.session.settings import in_process
from freshet.spark.worker.resident import Post

_LAST_TRY: Final = 5.0
"""Seconds in which residents end when they are asked to; after that their jobs are cancelled."""
_GREETING: Final = 20.0
"""Seconds that a start waits for residents; units that come before them run as jobs."""
IDLE: Final = 60.0
"""Seconds after which a resident without work ends, where executors come and go with the work."""


class Residents:
    """Residents of one Spark for one run.

    Args:
        session: Where they run.
        count: How many.
        clock: Is told which connections end its wait.
        room: Says when there are slots for them.
        port: Port of the driver that residents on other machines connect to; 0: any.
        fewer: Why there are fewer than wanted, if there are.
    """

    def __init__(
        self, session: SparkSession, count: int, clock: Waker, room: Room, *, port: int = 0, fewer: str | None = None
    ) -> None:
        context = session.sparkContext
        self._clock, self._room, self._fewer = clock, room, fewer
        self._arrived: deque[Newcomer] = deque()
        self._lost: list[int] = []
        self._drains = 0
        self._tasks: dict[int, int] = {}
        """Spark tasks by seat; replaced, never changed, because another thread reads it."""
        self._leaving: deque[int] = deque()
        """Seats whose executors are about to go."""
        self._there = threading.Condition()
        self._greeted = 0
        self._closed = False
        self.dispatches = 0
        """Number of the last dispatch."""
        secret, name, conf = secrets.token_bytes(32), secrets.token_hex(4), context.getConf()
        self._secret = secret
        if in_process(context.master or ""):
            self._listener = Listener(secret, self._welcome)
        else:
            host = conf.get("spark.driver.host", "127.0.0.1")
            bind = conf.get("spark.driver.bindAddress", host)
            self._listener = Listener(secret, self._welcome, bind=bind, host=host, port=port)
        posts = Post(self._listener.address, secret, 0, 0)
        self.seats = [
            Seat(number, f"{RESIDENT_GROUP}{name}-{number}", session, room, partial(_at, posts, number))
            for number in range(count)
        ]
        self._relief = Relief(context, self._drain_one)
        self._departures = Departures(context, lambda: self._tasks, self._drain_seat)
        for seat in self.seats:
            seat.start()

    def wait_until_there(self, seconds: float = _GREETING) -> bool:
        """Waits until all have been there once; returns whether that is so. From any thread.

        Where executors come and go it does not wait: there may be no room for them before there is work.
        """
        with self._there:
            return self._there.wait_for(
                lambda: self._greeted >= len(self.seats), 0.0 if self._room.elastic else seconds
            )

    def _welcome(self, newcomer: Newcomer) -> None:
        """On a thread of the listener."""
        self._arrived.append(newcomer)
        with self._there:
            self._greeted += 1
            self._there.notify_all()
        self._clock.wake()

    def idle(self) -> list[Seat]:
        """Those that can be given something to do."""
        self._seat_arrived()
        return [seat for seat, _ in self._idle()]

    @property
    def present(self) -> int:
        """How many are connected."""
        return sum(seat.presence is not None for seat in self.seats)

    def run(self, seat: Seat, part: int, assignment: str) -> int:
        """Hands a part of an assignment to an idle resident; returns the number of the dispatch."""
        presence = seat.presence
        assert presence is not None
        self.dispatches += 1
        presence.dispatch = self.dispatches
        self._send(presence, f'["run",{presence.dispatch},{part},{assignment}]')
        return presence.dispatch

    def cancel(self, seat: Seat) -> None:
        """Asks a resident to give up what it runs."""
        if seat.presence is not None:
            self._send(seat.presence, json.dumps(["cancel", seat.presence.dispatch]))

    def _send(self, presence: Presence, text: str) -> None:
        try:
            presence.channel.send(text)
        except OSError:
            return  # reading finds out, too
        if presence.channel.sending:
            self._clock.watch(presence.channel, writing=True)

    def answers(self) -> Iterator[tuple[int, list[Any] | None]]:
        """What residents have answered, by the number of the dispatch; None: the resident was lost. Does not wait."""
        self._seat_arrived()
        for seat in self.seats:
            presence = seat.presence
            if presence is None:
                continue
            try:
                self._flush(presence)
                texts = presence.channel.take()
            except (EOFError, OSError):
                self._leave(seat)
                seat.lose(presence.term)
                continue
            for text in texts:
                kind, number, *rest = json.loads(text)
                if number == presence.dispatch:
                    presence.dispatch, presence.since = None, time.time()
                    yield number, [kind, *rest]
        while self._lost:
            yield self._lost.pop(), None
        if self._drains or self._leaving or self._room.elastic:
            self._let_go()

    def _flush(self, presence: Presence) -> None:
        if presence.channel.sending and presence.channel.flush():
            self._clock.watch(presence.channel)

    def _leave(self, seat: Seat) -> None:
        presence, seat.presence = seat.presence, None
        if presence is not None:
            self._tasks = {number: task for number, task in self._tasks.items() if number != seat.number}
            self._clock.unwatch(presence.channel)
            presence.channel.close()
            if presence.dispatch is not None:
                self._lost.append(presence.dispatch)

    def dismiss(self, number: int) -> None:
        """Ends the resident that runs a dispatch: it takes too long. The dispatch counts as lost."""
        for seat in self.seats:
            if seat.presence is not None and seat.presence.dispatch == number:
                term = seat.presence.term
                self._leave(seat)
                seat.dismiss(term)

    def _drain_one(self) -> None:
        """Asks for the slot of a resident: a job waits for one. From any thread."""
        self._drains = 1
        self._clock.wake()

    def _drain_seat(self, number: int) -> None:
        """Asks for a resident to go, because its executor will. From any thread."""
        self._leaving.append(number)
        self._clock.wake()

    def call(self) -> None:
        """Says that there is more work than residents: those that have ended without work begin again."""
        for seat in self.seats:
            if seat.presence is None:
                seat.call()

    def next_end(self) -> float | None:
        """When a resident will have been idle for too long, in seconds since the epoch; None: never."""
        if not self._room.elastic:
            return None
        return min((presence.since + IDLE for _, presence in self._idle()), default=None)

    def _idle(self) -> list[tuple[Seat, Presence]]:
        there = ((seat, seat.presence) for seat in self.seats)
        return [(seat, presence) for seat, presence in there if presence is not None and presence.dispatch is None]

    def _let_go(self) -> None:
        """Lets idle residents go whose slot or executor is needed, or who have had no work for long; one that works is
        asked when it is done."""
        long_ago = time.time() - IDLE if self._room.elastic else 0.0
        leaving = {self._leaving.popleft() for _ in range(len(self._leaving))}
        for seat, presence in reversed(self._idle()):
            if self._drains or seat.number in leaving:
                self._drains = 0
                seat.rest(presence.term)
            elif presence.since <= long_ago:
                seat.rest_until_called(presence.term)
            else:
                continue
            self._send(presence, '["end"]')
            self._leave(seat)

    def _seat_arrived(self) -> None:
        while self._arrived:
            new = self._arrived.popleft()
            seat = self.seats[new.seat]
            if self._closed or new.term != seat.term:
                new.channel.close()
                continue
            self._leave(seat)  # Spark runs a task again only after it has lost it
            seat.presence = Presence(new.channel, new.term, new.process, new.host, new.task)
            self._tasks = {**self._tasks, seat.number: new.task}
            self._clock.watch(new.channel)

    def whereabouts(self) -> list[ResidentPlace]:
        """Where the residents are that are there now."""
        there = [seat.presence for seat in self.seats if seat.presence is not None]
        return [{"process": each.process, "host": each.host, "kept_bytes": each.kept_bytes} for each in there]

    @property
    def reason(self) -> str | None:
        """Why some that are wanted are not there; None: all are, or they have not come yet."""
        absent = (f"resident {each.number} {each.away}" for each in self.seats if each.away and not each.presence)
        return self._fewer or next(absent, None)

    @property
    def losses(self) -> int:
        """How many were lost so far."""
        return sum(seat.losses for seat in self.seats)

    def close(self) -> None:
        """Ends all residents; call it when the engine's thread has ended."""
        self._seat_arrived()
        self._closed = True
        for seat in self.seats:
            seat.stop()
            if seat.presence is not None:
                self._send(seat.presence, '["end"]')
                self._leave(seat)
        self._relief.close()
        self._departures.close()
        self._listener.close()
        self._end_jobs()
        self._room.close()

    def _end_jobs(self) -> None:
        """Residents see that their connections are closed; those that do not are cancelled."""
        until = time.monotonic() + _LAST_TRY
        for seat in self.seats:
            if not seat.join(max(0.0, until - time.monotonic())):
                seat.cancel()
        for seat in self.seats:
            seat.join(_LAST_TRY)


def open_residents(session: SparkSession, wanted: int, clock: Waker, port: int) -> tuple[Residents | None, str | None]:
    """Starts residents, at most as many as there are slots for them; None if that is none, and why."""
    context = session.sparkContext
    elastic = is_elastic(context)
    count, fewer = (wanted, None) if elastic or not wanted else take_slots(context, wanted)
    room = ElasticRoom(context) if elastic else FixedRoom(context, count)
    try:
        return Residents(session, count, clock, room, port=port, fewer=fewer) if count else None, fewer
    except BaseException:
        room.close()
        raise


def most_parts(free: int, residents: Residents | None) -> int:
    """Into how many parts a train is split at most: between residents, or between the tasks of a Spark job in the slots
    that residents leave of those that were free."""
    seats = 0 if residents is None else len(residents.seats)
    return max(free - seats, seats)


def _at(post: Post, seat: int, term: int) -> Post:
    return replace(post, seat=seat, term=term)
