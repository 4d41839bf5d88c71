"""The listener: where residents connect to the driver. Strangers are closed before anything of theirs is read."""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from freshet.model import FreshetError
from freshet.spark.worker.resident import tune
from freshet.spark.worker.wire import Channel, Stranger, prove_driver

_LOGGER: Final = logging.getLogger(__name__)
_LONGEST_PATH: Final = 100
"""Maximum length of the path of a Unix socket: the system allows 107 bytes, on some systems 103."""
_MOST_STRANGERS: Final = 32
"""Maximum number of connections that are proving at once who they are."""
_HELLO: Final = 10.0
_PREFIX: Final = "freshet-residents-"


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A resident that has connected and proved who it is."""

    channel: Channel
    seat: int
    term: int
    process: int
    host: str
    task: int
    """The number of its Spark task."""


def _sweep() -> None:
    """Removes the folders of drivers that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).split("-")[0]
        with suppress(OSError, ValueError):
            if folder.stat().st_uid == os.geteuid() and not _runs(int(owner)):
                shutil.rmtree(folder, ignore_errors=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Listener:
    """Takes connections of residents.

    Args:
        secret: What residents must know.
        welcome: Is called with each resident, on a thread of its own.
        bind: Address to listen at; None: a Unix socket in a folder that only this user can enter.
        host: Name of that address for others.
        port: Port to listen at; 0: any.
    """

    def __init__(
        self,
        secret: bytes,
        welcome: Callable[[Newcomer], None],
        *,
        bind: str | None = None,
        host: str | None = None,
        port: int = 0,
    ) -> None:
        self._secret, self._welcome = secret, welcome
        self._folder: Path | None = None
        self.address: str | tuple[str, int]
        """Where residents connect."""
        if bind is None:
            self._listen_nearby()
        else:
            self._listen(bind, host or bind, port)
        self._proving = threading.BoundedSemaphore(_MOST_STRANGERS)
        self._closing = False
        threading.Thread(target=self._accept, name="freshet-listener", daemon=True).start()

    def _listen_nearby(self) -> None:
        _sweep()
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))  # only this user can enter it
        path = str(self._folder / "residents")
        if len(path.encode()) > _LONGEST_PATH:
            self._listen("127.0.0.1", "127.0.0.1", 0)
            return
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(path)
        self._socket.listen(_MOST_STRANGERS)
        self.address = path

    def _listen(self, bind: str, host: str, port: int) -> None:
        bind, host = bind.strip("[]"), host.strip("[]")  # Spark writes addresses of IPv6 in brackets
        family = socket.AF_INET6 if ":" in bind else socket.AF_INET
        try:
            self._socket = socket.create_server((bind, port), family=family, backlog=_MOST_STRANGERS)
        except OSError as error:
            raise FreshetError(f"residents cannot connect: nothing can listen at {bind}:{port}: {error}") from error
        self.address = (host, int(self._socket.getsockname()[1]))

    def close(self) -> None:
        """Takes no connections any more."""
        self._closing = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # ends the wait for the next connection
        self._socket.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _accept(self) -> None:
        while not self._closing:
            try:
                connected, _ = self._socket.accept()
            except OSError:
                return
            if self._proving.acquire(blocking=False):
                threading.Thread(target=self._prove, args=(connected,), name="freshet-hello", daemon=True).start()
            else:
                connected.close()

    def _prove(self, connected: socket.socket) -> None:
        try:
            if connected.family != socket.AF_UNIX:
                tune(connected)
            prove_driver(connected, self._secret)
            channel = Channel(connected)
            [text] = channel.receive(_HELLO)
            newcomer = Newcomer(channel, *json.loads(text))
        except (Stranger, OSError, EOFError, ValueError, TypeError) as error:
            connected.close()
            _LOGGER.warning("a connection to the driver was refused: %s", error)
            return
        finally:
            self._proving.release()
        self._welcome(newcomer)
