"""An application with a query that the optimizer may change, one that is pinned, and a plain one."""

from __future__ import annotations

from pathlib import Path

APP = """
[app]
look_every = "500 ms"
[spark]
master = "local[2]"

[streams.packets]
schema = "host string, size int"
source = {kind = "generator", rate = 2000}

[queries.alarm]
sql = "SELECT host, size FROM packets WHERE size > 50"
expect.latency = {class = "must", points = "1 h"}
expect.memory = {class = "must", points = "1 B"}

[queries.archive]
sql = "SELECT host FROM packets WHERE size > 10"
expect.latency = "1 us"
strategy = "segment"

[queries.plain]
sql = "SELECT size FROM packets WHERE size > 90"
"""


def written(folder: Path) -> Path:
    path = folder / "app.toml"
    path.write_text(APP)
    return path
