"""What Spark's scheduler knows of tasks. It is asked itself, because the status store hears of tasks only later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pyspark import SparkContext

from freshet.spark.driver.residents.slots import slots_of

RESIDENT_GROUP: Final = "resident-"
"""What the job groups of residents begin with, of all runs."""


def _scheduler(context: SparkContext) -> Any:
    return context._jsc.sc().taskScheduler()


def running_tasks(context: SparkContext) -> int:
    """How many tasks run now, of all jobs."""
    # One call, however many executors there are.
    told = str(_scheduler(context).runningTasksByExecutors().values().mkString(" "))
    return sum(map(int, told.split()))


def running_of(context: SparkContext, group: str) -> int | None:
    """How many tasks of the jobs of a group run now; None: they have no tasks, not yet or not any more."""
    found = _task_sets(context, context.statusTracker().getJobIdsForGroup(group))
    return sum(int(each.runningTasks()) for each in found) if found else None


def waiting_jobs(context: SparkContext) -> frozenset[int]:
    """Jobs with tasks of which none runs, because all slots are taken; those of residents apart."""
    if running_tasks(context) < slots_of(context):
        return frozenset()
    found = {job: _task_sets(context, [job]) for job in context.statusTracker().getActiveJobsIds()}
    return frozenset(job for job, sets in found.items() if sets and not any(map(_runs_or_is_resident, sets)))


def _task_sets(context: SparkContext, jobs: Iterable[int]) -> list[Any]:
    """What Spark's scheduler has of the tasks of jobs."""
    tracker, scheduler = context.statusTracker(), _scheduler(context)
    found = map(tracker.getJobInfo, jobs)
    numbers = [number for job in found if job is not None and job.status == "RUNNING" for number in job.stageIds]
    stages = [stage for stage in map(tracker.getStageInfo, numbers) if stage is not None]
    sets = [scheduler.taskSetManagerForAttempt(stage.stageId, stage.currentAttemptId) for stage in stages]
    return [each.get() for each in sets if each.isDefined()]


def _runs_or_is_resident(tasks: Any) -> bool:
    properties = tasks.taskSet().properties()
    group = None if properties is None else properties.getProperty("spark.jobGroup.id")
    return bool(tasks.runningTasks()) or str(group).startswith(RESIDENT_GROUP)


def is_leaving(context: SparkContext, task: int) -> bool:
    """Whether the executor of a task is to go: it gets no new tasks, and ends with its last one."""
    scheduler = _scheduler(context)
    executor = scheduler.taskIdToExecutorId().get(task)
    return bool(executor.isDefined()) and bool(scheduler.isExecutorDecommissioned(executor.get()))
