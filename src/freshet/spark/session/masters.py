"""Checks that a master can be reached, before Spark tries for more than a minute."""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from typing import Final

from freshet.model import FreshetError

_PATIENCE: Final = 5.0
"""Seconds to wait for an answer of the masters: one that runs answers within a few milliseconds."""
_SCHEME: Final = "spark://"


def addresses(master: str) -> list[tuple[str, int]]:
    """Hosts and ports of a standalone master and its standby masters; empty for any other master.

    >>> addresses("spark://one:7077,two:7078"), addresses("local[2]")
    ([('one', 7077), ('two', 7078)], [])
    """
    if not master.startswith(_SCHEME):
        return []
    pairs = (place.rpartition(":") for place in master.removeprefix(_SCHEME).split(","))
    return [(host, int(port)) for host, _, port in pairs]


def check_reachable(master: str, patience: float = _PATIENCE) -> None:
    """Refuses a standalone master that does not answer. If there are several, one answer is enough.

    >>> check_reachable("spark://127.0.0.1:1")
    Traceback (most recent call last):
    freshet.model.errors.FreshetError: master spark://127.0.0.1:1 cannot be reached: 127.0.0.1:1: Connection refused...
    """
    places = addresses(master)
    answers: queue.SimpleQueue[tuple[str, str | None]] = queue.SimpleQueue()
    for host, port in places:
        # Resolving a name may take long, and nothing but the end of the process stops it.
        threading.Thread(target=_try, args=(host, port, patience, answers), daemon=True).start()
    until, reasons = time.monotonic() + patience + 0.5, {f"{host}:{port}": "no answer" for host, port in places}
    for _ in places:
        try:
            place, reason = answers.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            break
        if reason is None:
            return
        reasons[place] = reason
    if places:
        told = "; ".join(f"{place}: {reason}" for place, reason in reasons.items())
        raise FreshetError(f"master {master} cannot be reached: {told} (does it run, and is the port right?)")


def why_not_taken(error: Exception, master: str | None) -> str | None:
    """Why a master that answers did not take the application, if Spark only says that it has ended; else None."""
    wanted = master or os.environ.get("SPARK_MASTER") or ""
    if not addresses(wanted) or "stopped SparkContext" not in str(error):
        return None
    return f"master {wanted} answers, but did not take the application: is it a master of the same Spark version?"


def _try(host: str, port: int, patience: float, answers: queue.SimpleQueue[tuple[str, str | None]]) -> None:
    reason: str | None = None
    try:
        socket.create_connection((host, port), timeout=patience).close()
    except TimeoutError:
        reason = "no answer"
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    answers.put((f"{host}:{port}", reason))
