"""Suspects: queries that ran when a run died. The one that runs when it dies again is found, and stays out afterwards.

A death that came from within and that the driver has seen (a JVM out of memory) counts twice; one that may have come
from outside (a kill -9) counts once. If the driver died, too, the queries run alone from then on, but none stays out.
No PySpark here; see :mod:`freshet.spark.driver.running`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from freshet.spark.driver.files import write_whole
from freshet.spark.driver.running import LastWords, forget_last_words, last_words

STAYS_OUT: Final = "it stays out until its text changes or a run is told to --try-again"
"""The end of a reason that also holds for the next run."""

_FILE: Final = "suspects.json"
_ALONE: Final = 2
_GUILTY: Final = 3


class Suspects:
    """What is held against queries of a state folder.

    Args:
        state: The folder; nobody else uses it now.
        texts: A fingerprint of the text of each query that ran before.
        try_again: Whether to forget what is held against queries.
    """

    def __init__(self, state: Path, texts: Mapping[str, str], *, try_again: bool = False) -> None:
        self._file = state / _FILE
        self._lock = threading.Lock()
        self._deaths: dict[str, int] = {}
        self._out: dict[str, tuple[str, str]] = {}
        if not try_again:
            self._read()
            self._hear(last_words(state), texts)
        self._write()
        forget_last_words(state)

    @property
    def alone(self) -> frozenset[str]:
        """Queries that must run alone until they have succeeded once."""
        with self._lock:
            return frozenset(name for name, deaths in self._deaths.items() if deaths >= _ALONE)

    def clear(self, queries: Iterable[str]) -> None:
        """Clears queries: a unit that wrote their outputs has ended."""
        with self._lock:
            if self._deaths and (cleared := self._deaths.keys() & set(queries)):
                for name in cleared:
                    del self._deaths[name]
                self._write()

    def why_out(self, query: str, text: str) -> str | None:
        """Why a query must not run; None: it may."""
        known, reason = self._out.get(query, ("", ""))
        return reason if known == text else None

    def _hear(self, death: LastWords, texts: Mapping[str, str]) -> None:
        # If several ran although each of them had to run alone, it was work that they share.
        together = len(death.queries) == 1 or self.alone.issuperset(death.queries)
        for name in death.queries:
            self._deaths[name] = self._deaths.get(name, 0) + (_ALONE if death.certain else 1)
            # If the driver died, too, it was killed from outside: queries run in the JVM and in workers only.
            guilty = death.certain or (death.reason is not None and self._deaths[name] >= _GUILTY)
            if together and guilty:
                del self._deaths[name]
                reason = f"{death.reason} while this query ran alone; {STAYS_OUT}"
                self._out[name] = texts.get(name, name), reason

    def _read(self) -> None:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            self._deaths = {str(name): int(deaths) for name, deaths in found["deaths"].items()}
            self._out = {str(name): (str(text), str(reason)) for name, (text, reason) in found["out"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._deaths, self._out = {}, {}  # it is not synced: after a power cut nobody is to blame

    def _write(self) -> None:
        if not self._deaths and not self._out:
            self._file.unlink(missing_ok=True)
            return
        write_whole(self._file, json.dumps({"deaths": self._deaths, "out": self._out}))
