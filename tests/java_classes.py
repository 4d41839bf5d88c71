"""An archive of the classes that Spark loads (Java's class data sharing): a JVM that maps it starts with about 60 % of
the CPU. The many processes of the tests that start a Spark of their own take it if it is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import freshet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of a JVM that soon ends: Java would spend a third of its time on code that is fast, and hardly ever run."""


def options(archive: Path) -> str:
    """Options of the JVMs of tests. A JVM that cannot use the archive does without it, and says nothing."""
    if not archive.exists():
        return QUICK
    return f"{QUICK} -XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def place(folder: Path) -> Path:
    """Where the archive for this Java and this Spark lies, or would lie."""
    java = os.environ.get("JAVA_HOME") or shutil.which("java") or ""
    spark = find_spec("pyspark")  # not imported: most tests do without it
    told = f"{Path(java).resolve()} {spark and spark.origin} {version('pyspark')}"
    return folder / f"spark-{sha256(told.encode()).hexdigest()[:12]}.jsa"


def make(archive: Path) -> None:
    """Makes the archive in a process of its own. Where Java cannot make one, there is none."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"SPARK_SUBMIT_OPTS": f"{QUICK} -XX:+RecordDynamicDumpInfo"}
    command = [sys.executable, "-m", "tests.java_classes", str(archive)]
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(
            command, cwd=Path(__file__).parents[1], env=environment, capture_output=True, check=False, timeout=300
        )


def main(archive: Path) -> None:
    """Runs what applications run, in both forms, and lets the JVM write down what it has loaded."""
    from pyspark.sql import SparkSession

    settings = {"spark.ui.enabled": "false"}
    with TemporaryDirectory() as folder:
        app = freshet.App("classes", state=Path(folder) / "state", master="local[2]", spark=settings)
        app.stream("s", "k int, v double, t timestamp", event_time="t", lateness="0 s")
        app.query("compiled", "SELECT k, v * 2 AS w FROM s WHERE v > 0.5")
        app.query("interpreted", "SELECT k, soundex(CAST(v AS string)) AS w FROM s WHERE v > 0.5")
        app.query("windows", "SELECT k, count(*) AS n FROM s GROUP BY k, window(t, '10 seconds')")
        with app.start() as run:
            for second in range(0, 60, 10):
                run.push("s", [{"k": k, "v": k / 10, "t": f"2024-01-01 00:00:{second:02}"} for k in range(10)])
                run.drain()
            session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
            session.range(100).selectExpr("id % 7 AS k").groupBy("k").count().write.parquet(f"{folder}/rows")
            session.read.parquet(f"{folder}/rows").collect()
            dump(session, archive)


def dump(session: SparkSession, archive: Path) -> None:
    """Asks the JVM by its diagnostic commands; by reflection, since the class of its server is not public."""
    gateway, jvm = cast(Any, session.sparkContext)._gateway, cast(Any, session.sparkContext)._jvm

    def array(kind: Any, *values: Any) -> Any:
        made = gateway.new_array(kind, len(values))
        for number, value in enumerate(values):
            made[number] = value
        return made

    text, anything = jvm.java.lang.String, jvm.java.lang.Object
    whole = archive.with_suffix(f".{os.getpid()}")
    server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    commands = jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
    arguments = array(anything, array(text, "dynamic_dump", str(whole)))
    methods = jvm.java.lang.Class.forName("javax.management.MBeanServer").getMethods()
    [invoke] = [method for method in methods if method.getName() == "invoke"]
    invoke.invoke(server, array(anything, commands, "vmCds", arguments, array(text, "[Ljava.lang.String;")))
    whole.rename(archive)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
