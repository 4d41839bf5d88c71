"""Slots: how many tasks a Spark runs at once, and how many of them residents may hold.

Cores are not slots. A resident that waits needs no core, but holds a slot for as long as it lives, and jobs need slots,
too. Slots are counted for each Spark, however many runs use it.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from pyspark import SparkContext

from freshet.spark.session.settings import in_process, slots_of_local

_LOCK: Final = threading.Lock()
_TAKEN: Final[dict[str, int]] = {}
"""Slots that residents hold, by Spark application."""


def slots_of(context: SparkContext) -> int:
    """How many tasks a Spark runs at once, as it is now."""
    cpus = int(context.getConf().get("spark.task.cpus", "1"))
    return max(1, _cores_of(context) // cpus)


def _cores_of(context: SparkContext) -> int:
    master, jvm = context.master or "", context._jvm
    assert jvm is not None
    if in_process(master):
        return slots_of_local(master, jvm.Runtime.getRuntime().availableProcessors)
    try:
        # Unlike defaultParallelism it is what there is: neither a setting nor at least two.
        backend: Any = context._jsc.sc().schedulerBackend()
        return int(backend.totalCoreCount().get())
    except Exception:
        return context.defaultParallelism


def take_slots(context: SparkContext, wanted: int) -> int:
    """Takes slots for residents, as many as are left; one always remains for jobs."""
    there = slots_of(context)
    with _LOCK:
        taken = _TAKEN.get(context.applicationId, 0)
        granted = max(0, min(wanted, there - 1 - taken))
        _TAKEN[context.applicationId] = taken + granted
    return granted


def free_slots(context: SparkContext) -> int:
    """How many slots no resident holds."""
    there = slots_of(context)
    with _LOCK:
        return there - _TAKEN.get(context.applicationId, 0)


def give_back_slots(application: str, count: int) -> None:
    """Gives slots back."""
    with _LOCK:
        left = _TAKEN.get(application, 0) - count
        if left > 0:
            _TAKEN[application] = left
        else:
            _TAKEN.pop(application, None)
