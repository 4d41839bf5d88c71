"""A standalone Spark cluster on the loopback addresses of this machine: a master, and workers that can be killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark

import freshet
from freshet.spark.session.java import ensure_java

PATIENCE = 600.0
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

    def pythons(self, number: int) -> list[psutil.Process]:
        """The daemons of a worker and the Python processes that they have forked."""
        processes = psutil.Process(self.workers[number].pid).children(recursive=True)
        return [process for process in processes if _module(process)]

    def worker_of(self, process: int) -> int | None:
        """The number of the worker that a process belongs to."""
        with suppress(psutil.NoSuchProcess):
            above = {each.pid for each in psutil.Process(process).parents()}
            return next((number for number, worker in enumerate(self.workers) if worker.pid in above), None)
        return None

    def signal_pythons(self, number: int, what: signal.Signals) -> None:
        """Sends a signal to the Python processes of a worker."""
        for process in self.pythons(number):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(what)

    def environments(self, variable: str) -> set[tuple[str, str]]:
        """The modules that the workers' Python processes run, with a variable of their environment."""
        found = set()
        for process in (each for number in range(len(self.workers)) for each in self.pythons(number)):
            with suppress(psutil.Error):  # it has ended meanwhile
                found.add((_module(process), process.environ().get(variable, "")))
        return found


@contextmanager
def cluster(folder: Path, workers: int = 2, installed: bool = True, cores: int = 1) -> Iterator[Cluster]:
    """Starts a cluster, and ends every process of it.

    Args:
        folder: For its logs and working folders.
        workers: On 127.0.0.2, 127.0.0.3 and so on.
        installed: Whether the workers' Python finds Freshet.
        cores: Of each worker.
    """
    ensure_java()
    url = f"spark://127.0.0.1:{_free_port()}"
    started: list[subprocess.Popen[bytes]] = []
    try:
        host, port = url.removeprefix("spark://").split(":")
        log = folder / "master.log"
        options = ["--host", host, "--port", port, "--webui-port", str(_free_port())]
        started.append(_start("master.Master", log, installed, *options))
        _wait_for(log, "I have been elected leader", started[0])
        for number in range(workers):
            log = folder / f"worker{number}.log"
            options = ["--host", f"127.0.0.{number + 2}", "--cores", str(cores), "--memory", "1g", "--webui-port", "0"]
            options += ["--work-dir", str(folder / f"work{number}")]
            started.append(_start("worker.Worker", log, installed, *options, url))
            _wait_for(log, "Successfully registered with master", started[-1])
        yield Cluster(url, started[1:])
    finally:
        for process in started:
            if process.poll() is None:
                for child in psutil.Process(process.pid).children(recursive=True):
                    child.kill()
                process.kill()
            process.wait()


def _start(name: str, log: Path, installed: bool, *options: str) -> subprocess.Popen[bytes]:
    home = Path(pyspark.__file__).parent
    # What a test before has set for Spark in its own process is not for workers, which belong to others.
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"} | {
        "SPARK_HOME": str(home),
        "SPARK_NO_DAEMONIZE": "1",
        "JDK_JAVA_OPTIONS": os.environ["SPARK_SUBMIT_OPTS"],  # for master, workers and executors
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(freshet.__file__).parents[1]) if installed else "",
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


def _module(process: psutil.Process) -> str:
    """The module that a Python process runs; empty for others."""
    try:
        command: list[str] = process.cmdline()
    except psutil.Error:
        return ""
    return command[command.index("-m") + 1] if "-m" in command[:-1] else ""
