"""Ctrl-C and SIGTERM, as a command that has work to end hears them."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any, Self


class Interrupts:
    """Counts SIGINT and SIGTERM instead of dying of them."""

    def __init__(self) -> None:
        self.count = 0
        self.hurried = False
        """Whether the run was told not to drain any more."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.count += 1

    @property
    def hint(self) -> str:
        """What an ending run does, and how to leave it sooner."""
        if self.hurried:
            return "leaving"
        return f"draining, Ctrl-C {'again ' if self.count else ''}to leave"
