"""A web server in a process of its own whose resources change; it notes what it served.

``python -m freshet.bench.mirror.server SETTINGS`` serves until it is told to end, and then writes its record.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from aiohttp import web

from freshet.bench.mirror.changing import Changing, Served

_LONGEST_START: Final = 300.0


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How resources change.

    Args:
        rates: Changes a second of each resource.
        began: When version 0 came, in seconds of the wall clock.
        seconds: For how long they change.
        seed: Of the changes.
        folder: Where the server writes its port and its record.
    """

    rates: list[float]
    began: float
    seconds: float
    seed: int
    folder: str

    def changing(self) -> Changing:
        """The resources."""
        return Changing(self.rates, self.began, self.seconds, self.seed)


class ChangingServer:
    """Serves ``/READER/NUMBER`` as JSON with the version and a value, with the version as ETag."""

    def __init__(self, settings: ServerSettings) -> None:
        self._changing = settings.changing()
        self.record: list[Served] = []

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers one request."""
        _, reader, number = request.path.split("/")
        now, element = time.time(), int(number)
        version = self._changing.version(element, now)
        tag = f'"{version}"'
        same = request.headers.get("If-None-Match") == tag
        self.record.append(Served(now, reader, element, version, not same))
        if same:
            return web.Response(status=304, headers={"ETag": tag})
        value = (element * 7919 + version * 104729) % 10_000 / 100.0
        body = f'{{"version": {version}, "value": {value}}}'
        return web.Response(text=body, content_type="application/json", headers={"ETag": tag})


async def serve(settings: ServerSettings) -> None:
    """Serves until SIGTERM comes."""
    made, ended = ChangingServer(settings), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    runner = web.ServerRunner(web.Server(made.answer, access_log=None))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    folder = Path(settings.folder)
    _write(folder / "port", str(runner.addresses[0][1]))
    await ended.wait()
    await runner.cleanup()
    np.savez(
        folder / "record.npz",
        time=np.array([each.time for each in made.record]),
        reader=np.array([each.reader for each in made.record], dtype=np.str_),
        element=np.array([each.element for each in made.record], dtype=np.int64),
        version=np.array([each.version for each in made.record], dtype=np.int64),
        sent=np.array([each.sent for each in made.record], dtype=bool),
    )


def read_record(folder: Path) -> list[Served]:
    """What a server has served, in order."""
    with np.load(folder / "record.npz") as found:
        columns = [found[name].tolist() for name in ("time", "reader", "element", "version", "sent")]
    return [Served(*row) for row in zip(*columns, strict=True)]


@contextmanager
def serving(settings: ServerSettings) -> Iterator[str]:
    """A server in a process of its own; yields its address. At the end its record is in its folder."""
    folder = Path(settings.folder)
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "settings.json", json.dumps(asdict(settings)))
    with (folder / "server.log").open("wb") as log:
        child = subprocess.Popen([sys.executable, "-m", __name__, str(folder / "settings.json")], stderr=log)
    try:
        yield f"http://127.0.0.1:{_port(folder, child)}"
    finally:
        child.terminate()
        child.wait(_LONGEST_START)


def _port(folder: Path, child: subprocess.Popen[Any]) -> int:
    until = time.monotonic() + _LONGEST_START
    while not (folder / "port").exists():
        if child.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"the server did not start: {(folder / 'server.log').read_text()[-2000:]}")
        time.sleep(0.02)
    return int((folder / "port").read_text())


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_text(text)
    part.replace(path)


if __name__ == "__main__":
    asyncio.run(serve(ServerSettings(**json.loads(Path(sys.argv[1]).read_text()))))
