"""The tables that chains join with, in a task."""

from __future__ import annotations

import pyarrow as pa

from freshet.log import StoredVersion
from freshet.spark.failures import Retry
from freshet.spark.task import UNREADABLE


class TaskVersion(StoredVersion):
    """A version as a task reads it: where its file cannot be read, the unit is to run again."""

    __slots__ = ()

    def read(self) -> pa.Table:
        try:
            return StoredVersion.read(self)
        except OSError as error:
            raise Retry(f"a version of {self.segment.stream} {UNREADABLE}: {error}") from error
