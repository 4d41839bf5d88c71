"""The part of ``freshet explain`` on residents: how many there are to be, as far as that is known without Spark."""

from __future__ import annotations

import os
import re
from typing import Final

from freshet.app.declared.spec import Settings
from freshet.model.units import bytes_text
from freshet.spark.session.residency import too_few, wanted, why_no_start, why_none
from freshet.spark.session.settings import in_process, slots_of_local

_LOCAL_CLUSTER: Final = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*")
_LIMIT: Final = "spark.executor.pyspark.memory"


def why_no_residents(settings: Settings) -> str | None:
    """Why there will be no residents; None: there will be some, as far as settings say."""
    if (none := why_none(settings.spark, in_process(_master(settings)), settings.resident)) is not None:
        return none
    return too_few(1) if _slots(settings) == 1 else None


def planned_residents(settings: Settings) -> str:
    """The line on how many residents are planned, and why not more."""
    master, setting = _master(settings), settings.resident
    local = in_process(master)
    if (refused := why_no_start(settings.spark, local, setting)) is not None:
        return f"residents: the application cannot start: {refused}"
    if (none := why_no_residents(settings)) is not None:
        return f"residents: none, because {none}"
    return f"residents: {_number(settings, master, local)}; each keeps states of up to {_kept(settings)}"


def _number(settings: Settings, master: str, local: bool) -> str:
    setting, workers = settings.resident, settings.workers
    cores = slots_of_local(master, lambda: os.cpu_count() or 1) if local else _slots(settings)
    if cores is None:
        most = str(setting) if isinstance(setting, int) else f"{workers} (workers)"
        return f"at most {most}; fewer if {master} has fewer slots, because one is left to jobs"
    asked = wanted(setting, workers, cores, local)
    if setting != "auto":
        granted = asked if local else min(asked, cores - 1)
        return f"{granted}, as declared" if granted == asked else f"{granted} of {asked}, because {too_few(cores)}"
    if asked == workers:
        return f"{asked}, one for each unit that can run at once (workers)"
    left = "" if local else ", of which one is left to jobs"
    return f"{asked} of {workers} (workers), because {master} has {cores} core{'s' if cores > 1 else ''}{left}"


def _kept(settings: Settings) -> str:
    limit = settings.spark.get(_LIMIT)
    bound = "" if limit is None else f", and up to a quarter of what {_LIMIT} = {limit} leaves it"
    return f"{bytes_text(settings.kept_state)} (kept_state){bound}"


def _slots(settings: Settings) -> int | None:
    """Slots of a cluster on this machine; None: Spark knows."""
    found = _LOCAL_CLUSTER.fullmatch(_master(settings))
    if found is None or settings.spark.get("spark.dynamicAllocation.enabled", "").strip().lower() == "true":
        return None
    return max(1, int(found[1]) * int(found[2]) // int(settings.spark.get("spark.task.cpus", "1")))


def _master(settings: Settings) -> str:
    return settings.master or os.environ.get("SPARK_MASTER") or "local[*]"
