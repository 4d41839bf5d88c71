"""The connection between the driver and a resident: texts with their lengths, after both have proved who they are.

Nothing that comes in is ever unpickled, and nothing is read from somebody who does not know the secret.
"""

from __future__ import annotations

import hmac
import os
import select
import socket
import struct
from collections.abc import Iterator
from time import monotonic
from typing import Final

from freshet.model import FreshetError

_LENGTH: Final = struct.Struct("!I")
_PROOF: Final = 32
_PIECE: Final = 1 << 18
_PATIENCE: Final = 20.0
"""Seconds that the other side gets for all of its proof: who sends it byte by byte holds no place for long."""


class Stranger(FreshetError):
    """The other side does not know the secret."""


class Channel:
    """Sends and receives texts over a connected socket, and never waits unless it is asked to.

    >>> one, two = map(Channel, socket.socketpair())
    >>> one.send("hello")
    >>> two.receive()
    ['hello']
    >>> one.close()
    >>> two.take()
    Traceback (most recent call last):
    EOFError: the other side has closed the connection
    >>> two.close()
    """

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._incoming, self._outgoing = bytearray(), bytearray()
        connected.setblocking(False)

    def fileno(self) -> int:
        """The descriptor, for those who wait for several."""
        return self._socket.fileno()

    def close(self) -> None:
        """Closes the connection; what was not sent yet is lost."""
        self._socket.close()

    @property
    def sending(self) -> bool:
        """Whether something is still to be sent: call :meth:`flush` when the socket can be written to."""
        return bool(self._outgoing)

    def send(self, text: str) -> None:
        """Sends a text, or as much of it as the system takes now."""
        body = text.encode()
        self._outgoing += _LENGTH.pack(len(body)) + body
        self.flush()

    def flush(self) -> bool:
        """Sends more of what is still to be sent; returns whether that was all.

        Raises:
            OSError: The other side has gone.
        """
        while self._outgoing:
            try:
                sent = self._socket.send(self._outgoing)
            except BlockingIOError:
                return False
            del self._outgoing[:sent]
        return True

    def send_all(self, text: str) -> None:
        """Sends a text, and waits until the system has taken all of it."""
        self.send(text)
        while not self.flush():
            select.select((), (self,), ())

    def receive(self, seconds: float | None = None) -> list[str]:
        """Waits for texts, at most for some seconds; returns those that have come.

        Raises:
            EOFError: The other side has closed the connection.
        """
        while not (found := self.take()):
            if not select.select((self,), (), (), seconds)[0]:
                return []
        return found

    def take(self) -> list[str]:
        """The texts that have come; does not wait.

        Raises:
            EOFError: The other side has closed the connection.
        """
        try:
            while True:
                piece = self._socket.recv(_PIECE)
                if not piece:
                    raise EOFError("the other side has closed the connection")
                self._incoming += piece
                if len(piece) < _PIECE:
                    break
        except BlockingIOError:
            pass
        except OSError as error:
            raise EOFError(f"the connection is broken: {error}") from error
        return list(self._texts()) if self._incoming else []

    def _texts(self) -> Iterator[str]:
        begin, there = 0, len(self._incoming)
        while there - begin >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._incoming, begin)
            end = begin + _LENGTH.size + length
            if end > there:
                break
            yield self._incoming[begin + _LENGTH.size : end].decode()
            begin = end
        del self._incoming[:begin]


def prove_driver(connected: socket.socket, secret: bytes) -> None:
    """The driver's side of the mutual challenge (as that of :mod:`multiprocessing.connection`, with SHA-256).

    Raises:
        Stranger: The other side does not know the secret.
    """
    challenge, until = os.urandom(_PROOF), monotonic() + _PATIENCE
    connected.settimeout(_PATIENCE)
    connected.sendall(challenge)
    theirs = _exactly(connected, _PROOF, until)
    if not hmac.compare_digest(_exactly(connected, _PROOF, until), _proof(secret, b"worker", challenge, theirs)):
        raise Stranger("somebody who does not know the secret has connected")
    connected.sendall(_proof(secret, b"driver", challenge, theirs))


def prove_worker(connected: socket.socket, secret: bytes) -> None:
    """The worker's side of the mutual challenge.

    Raises:
        Stranger: The other side does not know the secret.
    """
    mine, until = os.urandom(_PROOF), monotonic() + _PATIENCE
    challenge = _exactly(connected, _PROOF, until)
    connected.sendall(mine + _proof(secret, b"worker", challenge, mine))
    if not hmac.compare_digest(_exactly(connected, _PROOF, until), _proof(secret, b"driver", challenge, mine)):
        raise Stranger("who listens at the driver's address does not know the secret")


def _proof(secret: bytes, side: bytes, *challenges: bytes) -> bytes:
    return hmac.digest(secret, side + b"".join(challenges), "sha256")


def _exactly(connected: socket.socket, count: int, until: float) -> bytes:
    found = b""
    while len(found) < count:
        connected.settimeout(max(until - monotonic(), 1e-3))
        piece = connected.recv(count - len(found))
        if not piece:
            raise Stranger("the connection was closed before both sides had proved who they are")
        found += piece
    return found
