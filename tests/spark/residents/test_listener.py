"""Where residents on other machines connect: over TCP, and only if they know the secret."""

from __future__ import annotations

import queue
import select
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from freshet.model import FreshetError
from freshet.spark.driver.residents.listener import Listener, Newcomer
from freshet.spark.worker import wire
from freshet.spark.worker.resident import Post
from freshet.spark.worker.wire import Channel, Stranger

SECRET = b"s" * 32
LOOPBACKS = ["127.0.0.1", "[::1]"]


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.fixture(params=LOOPBACKS)
def listening(request: pytest.FixtureRequest) -> Iterator[tuple[Listener, queue.Queue[Newcomer]]]:
    if request.param != LOOPBACKS[0] and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    come: queue.Queue[Newcomer] = queue.Queue()
    listener = Listener(SECRET, come.put, bind=request.param, host=request.param)
    yield listener, come
    listener.close()


def option(channel: Channel, level: int, name: int) -> int:
    return channel._socket.getsockopt(level, name)


def test_a_resident_connects_and_both_sides_send_at_once(listening: tuple[Listener, queue.Queue[Newcomer]]) -> None:
    listener, come = listening
    worker = Post(listener.address, SECRET, 2, 5).connect()
    newcomer = come.get(timeout=600.0)
    assert (newcomer.seat, newcomer.term, newcomer.task) == (2, 5, -1)
    for side in (worker, newcomer.channel):
        assert option(side, socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert option(side, socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_KEEPIDLE"):
            assert option(side, socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) < 60
    newcomer.channel.send("hello")
    assert worker.receive(60.0) == ["hello"]
    worker.close()
    newcomer.channel.close()


def test_a_stranger_is_closed_and_others_still_come(listening: tuple[Listener, queue.Queue[Newcomer]]) -> None:
    listener, come = listening
    with pytest.raises(Stranger):
        Post(listener.address, b"guessed", 0, 1).connect()
    assert isinstance(listener.address, tuple)
    with socket.create_connection(listener.address) as silent:
        silent.sendall(b"GET / HTTP/1.1\r\n" + b"x" * 200)
        silent.settimeout(60.0)
        silent.recv(32)  # the driver's challenge
        with pytest.raises((ConnectionError, AssertionError)):
            assert silent.recv(1)
    assert come.empty()
    worker = Post(listener.address, SECRET, 0, 1).connect()
    come.get(timeout=600.0).channel.close()
    worker.close()


def test_a_stranger_that_sends_byte_by_byte_holds_no_place(
    listening: tuple[Listener, queue.Queue[Newcomer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "_PATIENCE", 0.5)
    listener, come = listening
    assert isinstance(listener.address, tuple)
    sent = 0
    with socket.create_connection(listener.address) as slow, suppress(ConnectionError):
        slow.settimeout(60.0)
        slow.recv(32)  # the driver's challenge
        while sent < 64 and not select.select((slow,), (), (), 0.1)[0]:
            slow.sendall(b"x")
            sent += 1
    assert sent < 64
    assert come.empty()


def test_the_port_is_the_one_that_was_asked_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
        with pytest.raises(FreshetError, match=f"nothing can listen at 127.0.0.1:{port}"):
            Listener(SECRET, lambda newcomer: None, bind="127.0.0.1", port=port)
    listener = Listener(SECRET, lambda newcomer: None, bind="127.0.0.1", host="driver.example", port=port)
    assert listener.address == ("driver.example", port)
    listener.close()
