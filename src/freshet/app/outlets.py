"""Where outputs leave: the sinks of all queries."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from freshet.app.making import NamedSink, check_sinks, named_sinks
from freshet.app.problems import InvalidApp
from freshet.app.spec import QuerySpec
from freshet.log import Log
from freshet.sinks import SinkRunner, SinkStatus

LAST_WORDS: Final = 10.0
"""Seconds that the sinks of a dropped query get for what it has written."""


class Outlets:
    """Runs sinks: those of Freshet together on one thread, each that is code of the user on its own, so that a slow
    function holds up nobody else.

    Args:
        log: The outputs, and the sinks' cursors.
        notes: Gets what a person should know.
    """

    def __init__(self, log: Log, notes: list[str]) -> None:
        self._log, self._notes = log, notes
        self._shared = SinkRunner(log)
        self._shared.start()
        self._own: dict[str, SinkRunner] = {}
        self._sinks: dict[str, list[NamedSink]] = {}

    def check(self, spec: QuerySpec) -> None:
        """Refuses sinks that are declared wrongly."""
        problems = list(check_sinks([spec]))
        if problems:
            raise InvalidApp(problems)

    def forget_others(self, specs: Iterable[QuerySpec]) -> None:
        """Removes the cursors of sinks of earlier runs that are declared no more."""
        kept = {named.reader for spec in specs for named in named_sinks(spec)}
        for reader in self._log.readers():
            if "/" in reader and reader not in kept:
                self._log.drop_reader(reader)
                self._notes.append(f"sink {reader} is dropped")

    def open(self, spec: QuerySpec) -> None:
        """Opens the sinks of a query, each where it was."""
        self._sinks[spec.name] = named_sinks(spec)
        for named in self._sinks[spec.name]:
            runner = self._shared
            if named.foreign:
                runner = self._own[named.reader] = SinkRunner(self._log)
                runner.start()
            runner.add(spec.name, named.name, named.make())

    def drop(self, query: str) -> None:
        """Lets the sinks of a query take what is there, and closes them."""
        until = time.monotonic() + LAST_WORDS
        while any(self._hopes(status) for status in self._statuses() if status.query == query):
            if time.monotonic() > until:
                break
            self.wake()
            time.sleep(0.02)
        for named in self._sinks.pop(query, []):
            runner = self._own.pop(named.reader, None)
            if runner is not None:
                runner.stop(drain=False)
            self._shared.remove(query)
            self._log.drop_reader(named.reader)

    def _hopes(self, status: SinkStatus) -> bool:
        return status.waiting > 0 and status.state == "running"

    def wake(self) -> None:
        """Says that there is new output."""
        for runner in self._runners():
            runner.notify()

    def stop(self, drain: bool) -> None:
        """Ends all sinks, after they have taken what is there or at once."""
        for runner in self._runners():
            runner.stop(drain=drain, timeout=0.0)
        for runner in self._runners():
            runner.stop(drain=drain)

    def hurry(self) -> None:
        """Asks the sinks not to wait for more."""
        for runner in self._runners():
            runner.stop(drain=False, timeout=0.0)

    def states(self) -> dict[str, dict[str, Any]]:
        """For the report, by ``query/sink``."""
        return {f"{status.query}/{status.name}": asdict(status) for status in self._statuses()}

    def _statuses(self) -> list[SinkStatus]:
        return [status for runner in self._runners() for status in runner.statuses]

    def _runners(self) -> list[SinkRunner]:
        return [self._shared, *self._own.values()]
