"""Parquet files of sinks, written by one Spark job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

from pyspark.sql import SparkSession

from freshet.log import Export, Exported
from freshet.log.store.private import make_folder
from freshet.spark.session.settings import in_process
from freshet.spark.worker.assignment import telling
from freshet.spark.worker.exporting import EXPORTS, export_plan, orders_text, read_exports
from freshet.spark.worker.report import rows_of


class SparkExporter:
    """Writes files on the executors; implements :class:`freshet.sinks.Exporter`.

    Args:
        session: Where it runs.
        state: The state folder.
    """

    def __init__(self, session: SparkSession, state: Path) -> None:
        self._context = session.sparkContext
        self._state = state.resolve()
        self._specs = self._state / "specs"
        make_folder(self._specs)
        # The umask can only be read by setting it.
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self.sees_all = in_process(str(self._context.master))
        # Half of the cores, so that steps need not wait for sinks.
        self._most_tasks = max(1, self._context.defaultParallelism // 2)
        self._plan = cache(partial(export_plan, session))

    def export(self, number: int, exports: Sequence[Export]) -> list[Exported | Exception]:
        tasks = min(self._most_tasks, len(exports))
        name = f"sinks-{number}"
        text = orders_text(self._state, name, tasks, self._umask, exports)
        self._context.setJobGroup(name, f"sinks: {len(exports)} Parquet files")
        with telling(self._context, EXPORTS, text, self._specs, name):
            return read_exports(rows_of(self._plan(tasks)), tasks, len(exports))
