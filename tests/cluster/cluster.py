"""A standalone Spark cluster on the loopback addresses of this machine: a master, and workers that can be killed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark

import freshet
from freshet.spark.java import ensure_java

PATIENCE = 180.0
"""Seconds that a loaded machine may take to start a process."""


@dataclass(slots=True)
class Cluster:
    """A master and its workers, each on an address of its own, so that Spark takes them for different machines."""

    master: str
    workers: list[subprocess.Popen[bytes]]

    def kill_worker(self) -> None:
        """Ends a worker, its executors and their Python processes as a power cut would."""
        victim = self.workers.pop()
        for process in [*psutil.Process(victim.pid).children(recursive=True), psutil.Process(victim.pid)]:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        victim.wait()


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """Starts a cluster with a core per worker, and ends every process of it."""
    ensure_java()
    url = f"spark://127.0.0.1:{_free_port()}"
    started: list[subprocess.Popen[bytes]] = []
    try:
        host, port = url.removeprefix("spark://").split(":")
        log = folder / "master.log"
        started.append(_start("master.Master", log, "--host", host, "--port", port, "--webui-port", str(_free_port())))
        _wait_for(log, "I have been elected leader", started[0])
        for number in range(workers):
            log = folder / f"worker{number}.log"
            options = ["--host", f"127.0.0.{number + 2}", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
            started.append(_start("worker.Worker", log, *options, "--work-dir", str(folder / f"work{number}"), url))
            _wait_for(log, "Successfully registered with master", started[-1])
        yield Cluster(url, started[1:])
    finally:
        for process in started:
            if process.poll() is None:
                for child in psutil.Process(process.pid).children(recursive=True):
                    child.kill()
                process.kill()
            process.wait()


def _start(name: str, log: Path, *options: str) -> subprocess.Popen[bytes]:
    home = Path(pyspark.__file__).parent
    paths = [str(Path(freshet.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    with log.open("wb") as output:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *options],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
        )


def _wait_for(log: Path, words: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE
    while words not in (text := log.read_text(errors="replace")):
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"the cluster does not start: {text[-2000:]}")
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
