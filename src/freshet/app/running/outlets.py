"""Where outputs leave: the sinks of all queries."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from freshet.app.declared.endpoints import check_sinks, named_sinks
from freshet.app.declared.problems import Problem, noted, refuse
from freshet.app.declared.spec import QuerySpec
from freshet.log import Log
from freshet.sinks import Exporter, JsonlSink, ParquetSink, Sink, SinkRunner, SinkStatus, TableSink

LAST_WORDS: Final = 10.0
"""Seconds that the sinks of a dropped query get for what it has written."""
PATIENCE: Final = 60.0
"""Seconds within which some sink must take something while they drain; sinks that do not return are then given up."""
HURRIED: Final = 10.0
"""The same after a request to hurry."""
WRITERS: Final = 8
"""Number of files that the driver writes or renames at once: it mostly waits for the disk."""

_STEP: Final = 0.05
_LOGGER: Final = logging.getLogger(__name__)


class Outlets:
    """Runs sinks. Those of Freshet share three threads: one for tables, one for files that are gathered, one for the
    others. Each sink that runs code of the user has a thread of its own, so that a slow function holds up nobody else.

    Notes for a person are added to ``notes``. The exporter writes gathered files where Spark computes; None: this
    process writes them.
    """

    def __init__(self, log: Log, notes: list[str], exporter: Exporter | None = None) -> None:
        self._log, self._notes = log, notes
        self._together = {
            "quick": SinkRunner(log),
            "tables": SinkRunner(log),
            "files": SinkRunner(log, exporter=exporter, writers=WRITERS),
        }
        for runner in self._together.values():
            runner.start()
        self._own: dict[str, SinkRunner] = {}
        self._hurried = False
        self._left: list[SinkRunner] = []
        self._sinks: dict[str, dict[str, Sink]] = {}
        self._specs: dict[str, QuerySpec] = {}

    def check(self, spec: QuerySpec, columns: Sequence[str]) -> None:
        """Refuses sinks of a query that are declared wrongly, that write where another one does, or that must not."""
        others = [other for other in list(self._specs.values()) if other.name != spec.name]
        found = check_sinks([*others, spec], {spec.name: columns})
        refuse(problem for problem in found if problem.place.startswith(f"queries.{spec.name}."))
        check_files(self._log, [spec])

    def park_others(self, specs: Iterable[QuerySpec]) -> None:
        """Takes out the sinks of earlier runs that are no longer declared."""
        named = {spec.name: {sink.reader for sink in named_sinks(spec)} for spec in specs}
        for name, reader in self._log.readers().items():
            if reader.kind == "sink" and not reader.parked and name not in named.get(reader.owner, ()):
                self._log.park([name])
                if reader.owner in named:  # else a note says that the query itself is dropped
                    self._notes.append(f"sink {name} is dropped: put it back, and it continues where it was")

    def open(self, spec: QuerySpec) -> None:
        """Opens the sinks of a query, each where it was."""
        self._sinks[spec.name] = {}
        self._specs[spec.name] = spec
        for named in named_sinks(spec):
            sink, group = named.make(), named.group
            if group is None:
                runner = self._own[named.reader] = SinkRunner(self._log)
                runner.start()
            else:
                runner = self._together[group]
            known = self._log.readers().get(named.reader)
            missed = runner.add(spec.name, named.name, sink).lost
            self._sinks[spec.name][named.name] = sink
            if missed:
                self._notes.append(f"sink {named.reader} is back: {missed:,} rows came and went while it was out")
            elif known is not None and known.parked:
                self._notes.append(f"sink {named.reader} is back: it continues where it was")

    def sink(self, query: str, name: str) -> Sink | None:
        """An open sink by its query and its name."""
        return self._sinks.get(query, {}).get(name)

    def drop(self, query: str) -> None:
        """Lets the sinks of a query take what is there, and closes them; the log keeps their places."""
        for runner in self._runners():
            runner.hasten(query)
        until = time.monotonic() + LAST_WORDS
        while time.monotonic() <= until and any(
            status.query == query and status.waiting and status.state == "running" for status in self._statuses()
        ):
            self.wake()
            time.sleep(0.02)
        names = [f"{query}/{name}" for name in self._sinks.pop(query, {})]
        for reader in self._own.keys() & names:
            self._own.pop(reader).stop(drain=False, timeout=LAST_WORDS)
        for runner in self._together.values():
            runner.remove(query)
        self._log.park(names)
        self._specs.pop(query, None)

    def wake(self) -> None:
        """Says that there is new output."""
        for runner in self._runners():
            runner.notify()

    def stop(self, drain: bool) -> None:
        """Ends all sinks, either after they have taken what is there or at once; gives up those that never return."""
        self._hurried = self._hurried or not drain
        for runner in self._runners():
            runner.stop(drain=not self._hurried, timeout=0.0)
        taken, since, hurried = self._taken(), time.monotonic(), self._hurried
        while late := [each for each in self._runners() if each not in self._left and not each.join(_STEP)]:
            now = time.monotonic()
            if self._taken() != taken or self._hurried != hurried:
                taken, since, hurried = self._taken(), now, self._hurried
            if now - since >= (HURRIED if hurried else PATIENCE):
                self._give_up(late)
                return

    def _taken(self) -> int:
        return sum(status.rows for status in self._statuses())

    def _give_up(self, runners: list[SinkRunner]) -> None:
        """Leaves sinks alone whose threads do not end: they end with the process."""
        for status in (status for runner in runners for status in runner.statuses if status.waiting):
            text = "sink %s/%s does not return and is given up: %s rows wait for it in the log"
            _LOGGER.warning(text, status.query, status.name, f"{status.waiting:,}")
        self._left += runners

    def hurry(self) -> None:
        """Asks the sinks not to wait for more."""
        self._hurried = True
        for runner in self._runners():
            runner.stop(drain=False, timeout=0.0)

    def states(self) -> dict[str, dict[str, Any]]:
        """For the report, by ``query/sink``."""
        return {f"{status.query}/{status.name}": asdict(status) for status in self._statuses()}

    def _statuses(self) -> list[SinkStatus]:
        return [self._told(status, runner) for runner in self._runners() for status in runner.statuses]

    def _told(self, status: SinkStatus, runner: SinkRunner) -> SinkStatus:
        """A sink that was given up while rows waited for it has failed, although it did not raise."""
        if runner not in self._left or status.state != "running" or not status.waiting:
            return status
        return replace(status, state="failing", reason="it does not return")

    def _runners(self) -> list[SinkRunner]:
        return [*self._together.values(), *self._own.values()]


def check_files(log: Log, specs: Iterable[QuerySpec], origin: str = "") -> None:
    """Refuses files, folders and tables with rows that might be written again; nothing is touched."""
    problems: list[Problem] = []
    readers = log.readers()
    owners = {each.state["path"]: each for each in readers.values() if each.kind == "sink" and "path" in each.state}
    for spec in specs:
        for number, named in enumerate(named_sinks(spec)):
            place = f"queries.{spec.name}.sinks[{number}]"
            sink, known = None, readers.get(named.reader)
            with noted(problems, place):  # a module that cannot be imported
                sink = named.make()
            if not isinstance(sink, JsonlSink | ParquetSink | TableSink):
                continue
            why = sink.refusal({} if known is None else known.state)
            if why is None:
                continue
            owner = None if isinstance(sink, TableSink) else owners.get(str(sink.path))
            if owner is not None and owner.owner == spec.name:
                name = owner.name.removeprefix(f"{spec.name}/")
                why += f"; sink {owner.name} wrote it: with name = {name!r} this one continues there"
            problems.append(Problem(f"{place}.{'table' if isinstance(sink, TableSink) else 'path'}", why))
    refuse(problems, origin)
