"""Large trains are split over a cluster, and a part that is done twice, or by another worker, is answered once.

No test hangs on how fast a machine is. A worker's Python processes are frozen before a train comes, so that its part of
the train is begun and cannot be done until the test goes on; or a part never ends where it was begun first.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.cluster import Cluster, cluster
from tests.cluster.large import CHUNKS
from tests.cluster.large_run import Application, check, running
from tests.cluster.running import spark_log

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

VICTIM = 1
"""The worker on 127.0.0.3."""


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """For all tests, of which the last leaves one worker."""
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def test_all_executors_work_on_a_train_and_a_task_that_fails_is_done_again(tmp_path: Path, two_workers: Cluster):
    with running(tmp_path, two_workers.master, {}) as app:
        app.push()
        app.answered()
        hosts = [{app.tasks().hosts[task] for task in tasks} for tasks in app.units().values()]
        assert {"127.0.0.2", "127.0.0.3"} in hosts
        for _ in range(1, CHUNKS):
            before = push_to_a_frozen_worker(app, two_workers)
            # Spark may start a daemon that has died anew without giving up the task, so once may not be enough.
            while app.tasks().half_done(besides=before) and not app.tasks().lost - before:
                two_workers.signal_pythons(VICTIM, signal.SIGKILL)
                time.sleep(0.1)
            app.answered()
        assert app.tasks().lost
    check(tmp_path)


@pytest.mark.long  # test_cluster.py lets tasks run twice at the same time, too
def test_a_part_that_is_late_is_done_by_another_worker_beside_it(tmp_path: Path, two_workers: Cluster):
    with running(tmp_path, two_workers.master, {"spark.speculation": "true"}, has_late_part=True) as app:
        app.push()
        app.answered()
        app.push()
        app.answered()  # the first attempt of a part never ends by itself
        late = int((tmp_path / "late").read_text())
        place = app.tasks().hosts[late]
        [killed] = re.findall(rf"Killing attempt 0 .*\(TID {late}\) on {place} as the (.*)", spark_log(tmp_path))
        [other] = {"127.0.0.2", "127.0.0.3"} - {place}
        assert killed == f"attempt 1 succeeded on {other}"
        app.push()
        app.answered()
    check(tmp_path, has_late_part=True)


@pytest.mark.long  # test_cluster.py loses a worker, too
def test_a_worker_that_dies_in_the_middle_of_a_train_costs_no_row(tmp_path: Path, two_workers: Cluster):
    with running(tmp_path, two_workers.master, {}) as app:
        app.push()
        app.answered()
        push_to_a_frozen_worker(app, two_workers)
        two_workers.kill_worker()
        app.answered()
        app.push()
        app.answered()
        assert "Lost executor" in spark_log(tmp_path)
    check(tmp_path)


def push_to_a_frozen_worker(app: Application, workers: Cluster) -> frozenset[int]:
    """Pushes a chunk; returns when all of its train that the frozen worker did not get is done.

    Returns:
        The tasks before.
    """
    workers.signal_pythons(VICTIM, signal.SIGSTOP)
    before = app.tasks().started
    app.push()
    while not app.tasks().half_done(besides=before):
        assert app.process.poll() is None, app.errors()
        time.sleep(0.1)
    return before
