"""``freshet bench crash``: kill -9, again and again, and then count."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final

import psutil
import typer

from freshet.bench.crash import application
from freshet.bench.crash.application import QUERIES, STATEFUL, running
from freshet.bench.crash.kill import (
    MOMENTS,
    Kill,
    draw_kills,
    kill_all,
    kill_now,
    kill_one,
    needs_cluster,
    victims_of,
    wait_for,
    workers_of,
)
from freshet.bench.figures import Spread, extremes
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.rig.processes import still_there
from freshet.bench.stage import Stage

_LONGEST_START: Final = 600.0
_LONGEST_DRAIN: Final = 1200.0
_LONGEST_LOOK: Final = 60.0
_CLUSTER: Final = "local-cluster[2,1,1024]"


@bench(
    "Kills the driver, a resident or an executor at random moments and counts what was lost or repeated.",
    takes="about ten seconds for each kill, plus half a minute",
)
def crash(
    stage: Stage,
    kills: Annotated[int, typer.Option(min=1, help="How often to kill.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the moments of the kills.")] = 1,
    rate: Annotated[float, typer.Option(min=1.0, help="Rows a second of the generator.")] = 1000.0,
    longest: Annotated[float, typer.Option(min=0.0, help="Maximum seconds that a process runs before a kill.")] = 3.0,
    before: Annotated[
        Path | None, typer.Option(exists=True, help="Sources of an older version: the first half of the kills hit it.")
    ] = None,
) -> Result:
    """An application is started as a process, killed with SIGKILL, started again on the same state, and so on. A third
    of the kills hit the driver, alone or with all its processes. A third hit a resident (another Python worker if there
    is none), and a third the JVM of an executor; then the application must go on by itself. A process whose executors
    are to be killed runs on a small cluster (local-cluster[2,1,1024]), the others where SPARK_MASTER says, or in local
    mode. The application has a generator and pushes that are noted when acknowledged. Its queries are of both physical
    forms: filters, projections, a UNION ALL, a query on a query, a sliding aggregate by key, a join of both streams by
    event time, and an aggregate over the last rows of each key. States remember a minute, so they outlive several
    kills, and are divided by key between residents, however small they are. All queries write JSON lines. At the end
    the application drains. Then every output and every file of lines is compared, row by row, with Spark's batch answer
    over the whole log. With --before PATH (the src folder of an older version) that version runs first, and this one
    takes over its state folder.
    """
    from freshet.bench.crash.audit import Audit, audit, divided

    with ExitStack() as stack:
        victims = Victims(stage.folder, rate)
        stack.callback(victims.close)
        with stage.steps("killing", kills) as advance:
            drawn = draw_kills(kills, seed)
            for number, kill in enumerate(drawn):
                victims.sources = before if number < kills // 2 else None
                victims.on_cluster = needs_cluster(drawn[number:])
                victims.run_and_kill(kill, longest)
                advance()
        stage.say("draining ...")
        victims.drain()
        victims.close()
        stage.say("comparing with Spark's batch answers ...")
        session = stack.enter_context(stage.spark("crash"))
        found = audit(session, stage.folder)
    for what, each in found.items():
        if each.lost or each.doubled:
            stage.say(f"{what}: {each.lost} rows lost, {each.doubled} doubled, of {each.checked}")
    counted = {**_figures(victims, sum(found.values(), Audit())), "queries_in_parts": divided(stage.folder)}
    return Result.of(counted, _conditions(victims, found))


@dataclass(slots=True)
class Victims:
    """The processes that are killed, one after the other, on one state folder."""

    folder: Path
    rate: float
    program: str = application.__file__
    """The application."""
    kills: list[Kill] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    """Seconds from the start of each process until it ran."""
    sources: Path | None = None
    """Sources of the version that runs; None: this one."""
    on_cluster: bool = False
    """Whether the next process gets executors of its own."""
    kills_before: int = 0
    residents_killed: int = 0
    workers_killed: int = 0
    """Other Python workers, where there was no resident."""
    executors_killed: int = 0
    missed: int = 0
    """Kills of a resident or an executor for which there was no process."""
    _child: subprocess.Popen[bytes] | None = None
    _others: list[psutil.Process] = field(default_factory=list)
    _number: int = 0

    def run_and_kill(self, kill: Kill, longest: float) -> None:
        """Starts a process, unless one goes on after a kill of its worker, and kills at the given moment."""
        goes_on = self._child is not None and self._child.poll() is None
        child = self._child if self._child is not None and goes_on else self._start(kill.policy)
        if kill.moment == "start-up" and kill.victim in ("driver", "tree") and not goes_on:
            # A process that has finished its start by then is killed while it runs, which is as good.
            time.sleep(kill.place * extremes(self.starts).middle)
        else:
            if not goes_on:
                self._wait_until_running(child)
            if kill.victim in ("resident", "executor"):
                self._wait_for_victim(kill, child)
            wait_for(kill, self.folder / "state", longest)
        self._check_alive(child)
        driver = psutil.Process(child.pid)
        if kill.victim in ("driver", "tree"):
            self._others += kill_now(driver, kill.victim == "tree")
            child.wait()
        else:
            self._kill_beside(kill, driver)
        self.kills.append(kill)
        self.kills_before += self.sources is not None

    def _kill_beside(self, kill: Kill, driver: psutil.Process) -> None:
        """Kills what a driver is to go on without."""
        hit = kill_one(victims_of(kill, driver, self.folder), kill.place)
        if kill.victim == "executor":
            self.executors_killed += hit
        else:
            self.residents_killed += hit
            worker = not hit and kill_one(workers_of(driver), kill.place)
            self.workers_killed += worker
            hit = hit or worker
        self.missed += not hit

    def drain(self) -> None:
        """Lets a last process, of this version, run to its end."""
        if self._child is not None and self._child.poll() is None:
            self._others += kill_now(psutil.Process(self._child.pid), tree=False)
            self._child.wait()
        self.sources, self.on_cluster = None, False
        child = self._start("everything", "drain")
        self._wait_until_running(child)
        if child.wait(_LONGEST_DRAIN):
            raise RuntimeError(f"the last process failed to drain:\n{self._said()}")

    def close(self) -> None:
        """Ends what is left of all processes."""
        if self._child is not None and self._child.poll() is None:
            self._others += kill_now(psutil.Process(self._child.pid), tree=True)
            self._child.wait()
        kill_all(still_there(self._others, 20.0))
        self._others = []

    def _start(self, policy: str, *more: str) -> subprocess.Popen[bytes]:
        self._number += 1
        # By its path: an older version has it elsewhere, or another one.
        command = [sys.executable, "-P", self.program, str(self.folder), str(self._number), policy]
        settings = dict(os.environ)
        if self.sources is not None:
            settings["PYTHONPATH"] = str(self.sources.resolve())
        if self.on_cluster:
            settings |= {"SPARK_MASTER": _CLUSTER, "SPARK_HOME": str(spark_home(self.folder / "spark-home"))}
        with (self.folder / "crash_app.log").open("wb") as log:
            self._child = subprocess.Popen([*command, str(self.rate), *more], stdout=log, stderr=log, env=settings)
        return self._child

    def _wait_until_running(self, child: subprocess.Popen[bytes]) -> None:
        began, mark = time.monotonic(), running(self.folder)
        while not (mark.exists() and mark.read_text() == str(self._number)):
            self._check_alive(child)
            if time.monotonic() - began > _LONGEST_START:
                raise RuntimeError(f"a process did not start within {_LONGEST_START:.0f} s:\n{self._said()}")
            time.sleep(0.01)
        self.starts.append(time.monotonic() - began)

    def _wait_for_victim(self, kill: Kill, child: subprocess.Popen[bytes]) -> None:
        """Waits until there is one to be killed, not for ever: what was killed before comes back after a pause."""
        until, driver = time.monotonic() + _LONGEST_LOOK, psutil.Process(child.pid)
        while not victims_of(kill, driver, self.folder) and time.monotonic() < until:
            self._check_alive(child)
            time.sleep(0.1)

    def _check_alive(self, child: subprocess.Popen[bytes]) -> None:
        if child.poll() is not None:
            raise RuntimeError(f"a process ended by itself with {child.returncode}:\n{self._said()}")

    def _said(self) -> str:
        return (self.folder / "crash_app.log").read_text(errors="replace")[-4000:]


def spark_home(folder: Path) -> Path:
    """A home for Spark in a folder of its own: the executors of a ``local-cluster`` work in Spark's home."""
    if not folder.exists():
        folder.mkdir()
        # PySpark has the same files as Spark's home.
        for entry in Path(str(files("pyspark"))).iterdir():
            (folder / entry.name).symlink_to(entry)
    return folder


def _figures(victims: Victims, audit: Any) -> dict[str, float | Spread]:
    moments = Counter(kill.moment for kill in victims.kills)
    return {
        "kills": len(victims.kills),
        "rows_lost": audit.lost,
        "rows_doubled": audit.doubled,
        "rows_checked": audit.checked,
        "start_seconds": extremes(victims.starts),
        **{f"kills_{moment.replace('-', '_')}": moments[moment] for moment in MOMENTS},
        "kills_of_whole_tree": sum(kill.victim == "tree" for kill in victims.kills),
        "kills_of_residents": victims.residents_killed,
        "kills_of_other_workers": victims.workers_killed,
        "kills_of_executors": victims.executors_killed,
        "kills_of_nothing": victims.missed,
        "kills_of_version_before": victims.kills_before,
    }


def _conditions(victims: Victims, found: dict[str, Any]) -> dict[str, Any]:
    return {
        "queries": QUERIES | STATEFUL,
        "policies": dict(Counter(kill.policy for kill in victims.kills)),
        "checked": {what: each.checked for what, each in found.items()},
        "moments": (
            "start-up: on the way to running; running: some time after; file: when a segment file has just come into "
            "being; commit: while the store is written"
        ),
        "killed": (
            "by SIGKILL, a third each: the driver process, alone or together with the JVM and all workers; a resident, "
            "or another Python worker if there is none, while the driver goes on; the JVM of an executor of a cluster, "
            "likewise"
        ),
    }
