"""Which hosts may be asked, and how many requests of each may be under way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from freshet.model import UserError

_USUAL: Final = frozenset({"80", "443"})
PATIENCE: Final = 1.0
"""Seconds after which a request counts as hanging. It then keeps no other request of its host waiting."""
HANGING: Final = 16
"""Maximum number of hanging requests of a host, as a multiple of its connections."""


class AllowedHosts:
    """Hosts that elements and redirects may lead to, by patterns as in a shell; one without a port means 80 and 443.

    >>> allowed = AllowedHosts(["*.example.org", "localhost:8080"])
    >>> allowed.check("api.example.org"), allowed.check("localhost:8080")
    (None, None)
    >>> allowed.check("localhost:22")
    Traceback (most recent call last):
    freshet.model.errors.UserError: host localhost:22 is not allowed: name it in hosts
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = tuple(pattern.lower() for pattern in patterns)

    def check(self, host: str) -> None:
        """Refuses a host that no pattern names."""
        if not any(_matches(host.lower(), pattern) for pattern in self._patterns):
            raise UserError(f"host {host} is not allowed: name it in hosts")


def _matches(host: str, pattern: str) -> bool:
    """Whether a pattern names a host; without a port it names those of HTTP only.

    >>> [_matches(host, "10.0.*") for host in ("10.0.0.1", "10.0.0.1:80", "10.0.0.1:22", "10.1.0.1")]
    [True, True, False, False]
    >>> _matches("localhost:9", "localhost:*"), _matches("localhost", "localhost:443"), _matches("[::1]:9", "[::1]:9")
    (True, True, True)
    """
    (name, port), (wanted, ports) = _split(host), _split(pattern)
    if name != wanted and not fnmatchcase(name, wanted):  # the brackets of an address of IPv6 are no pattern
        return False
    own = _USUAL if port is None else {port}
    return bool(own & _USUAL) if ports is None else any(fnmatchcase(each, ports) for each in own)


def _split(host: str) -> tuple[str, str | None]:
    """A name and its port, if it has one."""
    name, colon, port = host.rpartition(":")
    return (name, port) if colon and "]" not in port else (host, None)


class HostGate:
    """Decides whether one more request of a host may begin.

    A request that hangs stops counting after :data:`PATIENCE`, so that a part of the elements that never answer delays
    nobody else. Elements that failed the last time wait while half as many requests hang as may run.

    >>> gate = HostGate(connections=2)
    >>> gate.enter("a", 0.0), gate.enter("a", 0.0), gate.enter("a", 0.5), gate.enter("a", 1.5)
    (1, 2, None, 3)
    >>> gate.enter("a", 1.5, suspect=True) is None
    True
    >>> gate.close_until("b", 60.0)
    >>> gate.enter("b", 20.0), gate.closed(20.0), gate.closed(60.0)
    (None, {'b': 40.0}, {})
    """

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self._begun: defaultdict[str, dict[int, float]] = defaultdict(dict)
        self._closed_until: dict[str, float] = {}
        self._number = 0

    def enter(self, host: str, now: float, suspect: bool = False) -> int | None:
        """Begins a request, which counts from now on.

        Args:
            host: Where it goes.
            now: The time.
            suspect: Whether the last request for the same element failed.

        Returns:
            A ticket for :meth:`end`; None if the request must wait.
        """
        under_way = self._begun[host]
        if self.is_closed(host, now):
            return None
        # Tickets are in the order of their times: those that hang come first.
        hanging = 0
        for begun in under_way.values():
            if now - begun < PATIENCE:
                break
            hanging += 1
        if len(under_way) - hanging >= self._connections or hanging >= HANGING * self._connections:
            return None
        if suspect and hanging >= max(1, self._connections // 2):
            return None
        self._number += 1
        under_way[self._number] = now
        return self._number

    def end(self, host: str, ticket: int) -> None:
        """A request has ended."""
        self._begun[host].pop(ticket, None)

    def close_until(self, host: str, time: float) -> None:
        """Begins no request of a host before a time: it asked for that."""
        self._closed_until[host] = max(time, self._closed_until.get(host, time))

    def is_closed(self, host: str, now: float) -> bool:
        """Whether a host asked to be left alone until later."""
        return now < self._closed_until.get(host, now)

    def closed(self, now: float) -> dict[str, float]:
        """Hosts that asked to be left alone until later, with the seconds that are left."""
        return {host: until - now for host, until in self._closed_until.items() if until > now}

    @property
    def under_way(self) -> int:
        """Number of requests that have begun and not ended."""
        return sum(map(len, self._begun.values()))
