"""What the tests of several sinks share."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from freshet.log import Log

WRITER = """
import sys, time
from pathlib import Path
from freshet.log import Intake, Limits, Log, Retention
from freshet.model import Stream, parse_schema
from freshet.sinks import SinkRunner, create
from freshet.sources import Feeder, create as create_source

state, kind, options, limit = Path(sys.argv[1]), sys.argv[2], __import__("json").loads(sys.argv[3]), int(sys.argv[4])
stream = Stream("s", parse_schema("id bigint, v double, ts timestamp"))
log = Log.open(state, limits=Limits(min_free_bytes=0))
log.declare("s", Retention())
runner = SinkRunner(log, interval=0.001, max_rows=50)
runner.add("s", "sink", create(kind, options))
columns = {"id": {"kind": "sequence"}}
source = create_source("generator", {"rate": 20000, "limit": limit, "max_rows": 100, "columns": columns}, stream)
feeder = Feeder(source, Intake(log, stream), log, "s", wake=runner.notify, interval=0.001)
runner.start()
feeder.start()
while log.cursor("s/sink") < limit:
    print(log.cursor("s/sink"), flush=True)
    time.sleep(0.001)
feeder.stop()
runner.stop()
print(log.cursor("s/sink"), runner.statuses[0].failures, flush=True)
log.close()
"""


def kill_and_finish(state: Path, kind: str, options: dict[str, object], ways: list[int]) -> int:
    """Runs a writer, kills it with SIGKILL whenever its cursor has come so much further, and lets it finish at last.

    One that is killed has no end of its own, so that it cannot come to it first on a busy machine.

    Returns:
        How many rows there are in the end.
    """
    command = [sys.executable, "-c", WRITER, str(state), kind, json.dumps(options)]
    paths = [str(Path(__file__).parents[2] / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    rows = 0
    for number, way in enumerate(ways):
        process = subprocess.Popen([*command, str(10**9)], stdout=subprocess.PIPE, text=True, env=environment)
        assert process.stdout is not None
        enough = int(process.stdout.readline()) + way
        while int(process.stdout.readline()) < enough:
            pass
        time.sleep(0.003 * number)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with Log.open(state) as log:
            assert rows < log.end("s")
            rows = log.end("s")
    rows += 1000
    last = subprocess.run([*command, str(rows)], stdout=subprocess.PIPE, text=True, env=environment, check=True)
    assert last.stdout.splitlines()[-1] == f"{rows} 0"
    return rows
