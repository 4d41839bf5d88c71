"""What Spark's scheduler knows of tasks. It is asked itself, because the status store hears of tasks only later."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext


def _scheduler(context: SparkContext) -> Any:
    return context._jsc.sc().taskScheduler()


def running_tasks(context: SparkContext) -> int:
    """How many tasks run now, of all jobs."""
    counts, found = _scheduler(context).runningTasksByExecutors().valuesIterator(), 0
    while counts.hasNext():
        found += int(counts.next())
    return found


def running_of(context: SparkContext, group: str) -> int | None:
    """How many tasks of the jobs of a group run now; None: they have no tasks, not yet or not any more."""
    tracker, scheduler = context.statusTracker(), _scheduler(context)
    jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(group))
    numbers = [number for job in jobs if job is not None and job.status == "RUNNING" for number in job.stageIds]
    stages = [stage for stage in map(tracker.getStageInfo, numbers) if stage is not None]
    sets = [scheduler.taskSetManagerForAttempt(stage.stageId, stage.currentAttemptId) for stage in stages]
    begun = [each.get() for each in sets if each.isDefined()]
    return sum(int(each.runningTasks()) for each in begun) if begun else None


def is_leaving(context: SparkContext, task: int) -> bool:
    """Whether the executor of a task is to go: it gets no new tasks, and ends with its last one."""
    scheduler = _scheduler(context)
    executor = scheduler.taskIdToExecutorId().get(task)
    return bool(executor.isDefined()) and bool(scheduler.isExecutorDecommissioned(executor.get()))
