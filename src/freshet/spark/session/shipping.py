"""Executors of a cluster run the driver's Freshet, whether they have one installed or not.

The package goes to every executor as an archive, before its first task. The archive is on the path of the process that
forks Python workers, so that this can be Freshet's own, which loads everything before it forks. It is also on the path
of each worker, for executors whose Python ignores the environment (``python -E``) and which use Spark's own process.
The libraries that the package needs are not shipped: parts of them are compiled for one machine.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterable, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark import SparkContext, SparkFiles
from pyspark.errors import PySparkException

import freshet
from freshet.model import FreshetError, UserError

ARCHIVE: Final = f"freshet-{freshet.__version__}.zip"

_NEEDED: Final = "numpy, pandas, pyarrow and sqlglot"
_MISSING: Final = re.compile(r"No module named '(?P<module>\w+)")
_UNLIKE: Final = re.compile(r"Python in worker has different version[^\n]*?(?=[.,] (?:PySpark|Please)|\n|$)")
_LOADED: Final[set[str]] = set()
"""Ids of the Sparks whose executors have loaded what tasks need."""


class PackageMissing(UserError):
    """Python workers cannot import Freshet."""


def write_archive(path: Path) -> None:
    """Writes the package as it is imported here.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_archive(Path(folder) / "freshet.zip")
    ...     "freshet/spark/worker/daemon.py" in zipfile.ZipFile(Path(folder) / "freshet.zip").namelist()
    True
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in _walk("freshet", files("freshet")):
            archive.writestr(name, file.read_bytes())


def ship(context: SparkContext) -> None:
    """Sends the package to all executors, now and later; once for each Spark."""
    paths = [path for path in context.environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    if ARCHIVE in paths:
        return
    # This folder lives as long as Spark does: executors may ask for the archive at any time.
    folder = Path(SparkFiles.getRootDirectory()) / "shipped"
    folder.mkdir(exist_ok=True)
    write_archive(folder / ARCHIVE)
    context.addPyFile(str(folder / ARCHIVE))
    # Executors keep what they were sent in their working folder. Spark puts this before the path that an executor
    # has of its own and leaves that as it is; executorEnv.PYTHONPATH would replace it.
    context.environment["PYTHONPATH"] = os.pathsep.join([ARCHIVE, *paths])


def load_package(context: SparkContext) -> None:
    """Lets the executors load what tasks need, with one task for every core that Spark knows of; once for each Spark.

    Raises:
        PackageMissing: They cannot import Freshet.
        UserError: They have no Python, or one without the modules that Freshet needs.
        FreshetError: They run no tasks for another reason.
    """
    spark, tasks = str(context.applicationId), context.defaultParallelism
    if spark in _LOADED:
        return
    try:
        context.parallelize(range(tasks), tasks).foreachPartition(_load)
    except (Py4JError, PySparkException) as error:
        raise _explained(str(error), context.pythonExec) from error
    _LOADED.add(spark)


def _load(numbers: Iterable[int]) -> None:
    import freshet.spark.worker.catalyst
    import freshet.spark.worker.exporting
    import freshet.spark.worker.vectorised  # noqa: F401

    for _ in numbers:
        pass


def _explained(text: str, python: str) -> FreshetError:
    r"""What keeps executors from running tasks.

    >>> print(_explained("...\nModuleNotFoundError: No module named 'pyarrow.lib'\n...", "/usr/bin/python3"))
    executors cannot import pyarrow: their Python (/usr/bin/python3) needs numpy, pandas, pyarrow and sqlglot, ...
    >>> print(_explained('java.io.IOException: Cannot run program "/opt/python"', "/opt/python"))
    executors have no Python at /opt/python; the setting spark.pyspark.python or PYSPARK_PYTHON names another one
    """
    other = "the setting spark.pyspark.python or PYSPARK_PYTHON names another one"
    if missing := _MISSING.search(text):
        module = missing["module"]
        if module == "freshet":
            return PackageMissing(f"Python workers cannot import freshet; install it for {python}, or {other}")
        return UserError(f"executors cannot import {module}: their Python ({python}) needs {_NEEDED}, or {other}")
    if unlike := _UNLIKE.search(text):
        return UserError(f"{unlike[0]}: {other}")
    if "Cannot run program" in text:
        return UserError(f"executors have no Python at {python}; {other}")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("\tat ")]
    return FreshetError(f"executors cannot run Python ({python}): {' '.join(lines[:4])[:400]}")


def _walk(name: str, folder: Traversable) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        path = f"{name}/{entry.name}"
        if entry.is_file():
            yield path, entry
        elif entry.name != "__pycache__":
            yield from _walk(path, entry)
