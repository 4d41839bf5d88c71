"""A mirror in a process of its own, to be killed: python kill_child.py STATE ADDRESS COUNT."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.sources.mirror.feeding import feeding, stream

SCHEMA = "element string, version bigint"


def main(state: str, address: str, count: int) -> None:
    options = {
        "elements": [str(number) for number in range(count)],
        "http": {"url": f"{address}/m/{{element}}"},
        "budget": 300.0,
        "change_every": 1.0,
        "timeout": 60.0,
    }
    with feeding(Path(state), options, stream(SCHEMA)):
        print("running", flush=True)
        while True:
            time.sleep(1.0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
