"""Slots: how many tasks a Spark runs at once, and how many of them residents may hold.

Cores are not slots. A resident that waits needs no core, but holds a slot for as long as it lives, and jobs need slots,
too. Slots are counted for each Spark, however many runs use it.
"""

from __future__ import annotations

import logging
import threading
from typing import Any, Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from freshet.spark.session.residency import MOST, ResidentSetting, too_few, wanted, why_none
from freshet.spark.session.settings import in_process, slots_of_local

_LOGGER: Final = logging.getLogger(__name__)
_LOCK: Final = threading.Lock()
_TAKEN: Final[dict[str, int]] = {}
"""Slots that residents hold, by Spark application."""


def slots_of(context: SparkContext) -> int:
    """How many tasks a Spark runs at once, as it is now."""
    # PySpark's getConf copies all settings, with two calls for each; this is asked every second.
    conf: Any = context._jsc.sc().conf()
    return max(1, _cores_of(context) // int(conf.get("spark.task.cpus", "1")))


def _cores_of(context: SparkContext) -> int:
    master, jvm = context.master or "", context._jvm
    assert jvm is not None
    if in_process(master):
        return slots_of_local(master, jvm.Runtime.getRuntime().availableProcessors)
    try:
        # Unlike defaultParallelism it is what there is: neither a setting nor at least two. Py4J makes a number of it.
        backend: Any = context._jsc.sc().schedulerBackend()
        return int(backend.totalCoreCount())
    except Exception as error:
        _LOGGER.debug("Spark does not say how many cores there are: %s", error)
        return context.defaultParallelism


def is_elastic(context: SparkContext) -> bool:
    """Whether executors come and go with the work (dynamic allocation)."""
    told = context.getConf().get("spark.dynamicAllocation.enabled", "false") or "false"
    return told.strip().lower() == "true" and not in_process(context.master or "")


def residents_for(session: SparkSession, setting: ResidentSetting, workers: int) -> tuple[int, str | None]:
    """How many residents a run on a Spark wants, and why there can be none.

    Args:
        session: Of the run.
        setting: As declared.
        workers: Maximum number of units that run at once.
    """
    context = session.sparkContext
    local = in_process(context.master or "")
    found = dict(context.getConf().getAll()) | session.conf.getAll  # a session may have its own
    if (none := why_none(found, local, setting)) is not None:
        return 0, none
    if local:
        return wanted(setting, workers, context.defaultParallelism, local), None
    if is_elastic(context):  # those executors that are there at the start say nothing
        return wanted(setting, workers, MOST + 1, local), None
    there = slots_of(context)
    return wanted(setting, workers, there, local), too_few(there) if there == 1 else None


def take_slots(context: SparkContext, wanted: int) -> tuple[int, str | None]:
    """Takes slots for residents, as many as are left; one always remains for jobs. Returns how many it took, and why
    not all."""
    there = slots_of(context)
    with _LOCK:
        taken = _TAKEN.get(context.applicationId, 0)
        granted = max(0, min(wanted, there - 1 - taken))
        _TAKEN[context.applicationId] = taken + granted
    return granted, None if granted == wanted else too_few(there, taken)


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
