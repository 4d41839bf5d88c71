"""Keeps what lasts as long as an application out of Python's garbage collections.

The process of an application has some hundred thousand objects that stay: modules, queries, what Spark's Python side
holds. A step with many queries makes thousands of objects that live for a few milliseconds, so that Python soon makes a
full collection, which visits all objects that stay. With 250 queries a third of the engine's time went there, in pauses
that every query waited for.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_lock: Final = threading.Lock()
_running: Final[list[object]] = []


@contextmanager
def lasting() -> Iterator[None]:
    """While it lasts, garbage collections leave out the objects that are there at its beginning.

    Objects without cycles are freed all the same, and the others when the last such block ends.

    >>> with lasting():
    ...     gc.get_freeze_count() > 0
    True
    """
    mine = object()
    with _lock:
        gc.collect()
        gc.freeze()
        _running.append(mine)
    try:
        yield
    finally:
        with _lock:
            _running.remove(mine)
            if not _running:
                gc.unfreeze()
