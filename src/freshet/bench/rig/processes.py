"""Processes that a benchmark has ended."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

import psutil

_PAUSE: Final = 0.05
"""Seconds between looks."""


def still_there(processes: Iterable[psutil.Process], patience: float) -> list[psutil.Process]:
    """The processes that have not ended after this many seconds.

    It looks at them now and then. :func:`psutil.wait_procs` asks the system for a handle instead, and some systems
    refuse that, with an error of their own, for a process that ends at that very moment.

    >>> still_there([], 0.0)
    []
    """
    end, left = time.monotonic() + patience, list(processes)
    while True:
        left = [each for each in left if _is_there(each)]
        if not left or time.monotonic() >= end:
            return left
        time.sleep(_PAUSE)


def _is_there(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
