"""What a mirror may do to others: its budget, hosts that hang or are busy, redirects and sizes."""

from __future__ import annotations

import gzip
import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.sources.mirror.feeding import feeding, stream
from tests.sources.mirror.test_mirror import options, price
from tests.sources.mirror.web import Web, serving

from freshet.model import UserError
from freshet.sources import create
from freshet.sources.mirror.source import MirrorSource


def most_within(times: list[float], span: float) -> int:
    found = np.sort(np.array(times))
    return int((np.searchsorted(found, found + span) - np.arange(len(found))).max())


def test_no_span_has_more_requests_than_the_budget_allows(tmp_path: Path, web: Web) -> None:
    names = [f"e{number}" for number in range(60)]
    web.pages = {f"/{name}": price(1) for name in names}
    web.pages |= {f"/e{number}": redirect(f"/to{number}") for number in range(10)}
    web.pages |= {f"/to{number}": price(2) for number in range(10)}
    web.pages |= {f"/e{number}": failing for number in range(10, 20)}
    # One at a time: a server that is slow to see requests then cannot see many at once.
    given = options(web, *names, budget=40.0, audit=0.1, connections=1)
    with feeding(tmp_path, given) as fed:
        fed.until(lambda: len(web.requests) >= 120)
        # A pause of everything: the process held its breath, and must not make up for it.
        with fed.source._poller.lock:
            time.sleep(2.0)
        fed.until(lambda: len(web.requests) >= 220)
    times = [at for at, _, _ in web.requests]
    # Besides the budget, what the bucket holds; one request may be seen later by the server than it was sent.
    for span in (1.0, 2.0, 3.0):
        assert most_within(times, span) <= 40.0 * (span + 0.1) + 4


def redirect(target: str) -> Any:
    return lambda request: request.answer(302, b"", {"Location": target})


def failing(request: Any) -> None:
    request.answer(500, b"")


def test_a_tenth_of_the_elements_hangs_and_nobody_else_waits(tmp_path: Path, web: Web) -> None:
    released = threading.Event()

    def hang(request: Any) -> None:
        released.wait(60.0)
        request.answer(200, price(0))

    names = [f"e{number}" for number in range(100)]
    web.pages = {f"/{name}": hang if number % 10 == 0 else price(number) for number, name in enumerate(names)}
    given = options(web, *names, budget=200.0, timeout=5.0, connections=8)
    try:
        with feeding(tmp_path, given) as fed:
            fed.until(lambda: len(fed.rows()) == 90)
            assert not released.is_set()
            polls = {each.element: each.polls for each in fed.source.rates()}
            before = min(count for name, count in polls.items() if count)
            fed.until(lambda: min(each.polls for each in fed.source.rates() if each.polls) > before + 3)
            fed.until(lambda: fed.source.status.failing == 10)
            assert "no answer within 5 s" in fed.source.status.failing_examples.values()
    finally:
        released.set()


def test_retry_after_holds_for_the_host(tmp_path: Path, web: Web) -> None:
    def busy(request: Any) -> None:
        request.answer(429, b"", {"Retry-After": "2"})

    with serving() as other:
        web.pages = {"/a": busy, "/b": price(1)}
        other.pages = {"/c": price(3)}
        elements = [f"{web.address}/a", f"{web.address}/b", f"{other.address}/c"]
        given = options(web, *elements, http={})
        with feeding(tmp_path, given) as fed:
            fed.until(lambda: "/a" in web.paths())
            asked = next(at for at, path, _ in web.requests if path == "/a")
            web.pages["/a"] = price(2)
            fed.until(lambda: any(element.endswith("/a") for element, _ in fed.values()))
            fed.until(lambda: any(element.endswith("/c") for element, _ in fed.values()))
    between = [at for at, _, _ in web.requests if asked + 0.2 < at < asked + 1.9]
    assert between == [], "the host asked for two seconds of peace"
    assert [at for at, _, _ in other.requests if asked + 0.2 < at < asked + 1.9], "the other host was polled meanwhile"


@pytest.mark.parametrize("status", [404, 503])
def test_audits_wait_as_well(tmp_path: Path, web: Web, status: int) -> None:
    def busy(request: Any) -> None:
        request.answer(status, b"", {"Retry-After": "300"})

    web.pages = {"/a": busy}
    with feeding(tmp_path, options(web, "a", audit=0.5)) as fed:
        fed.until(lambda: fed.source.status.failing == 1)
        time.sleep(3.0)
    assert len(web.requests) == 1, "it asked for five minutes of peace"


def test_a_redirect_must_lead_to_an_allowed_host(tmp_path: Path, web: Web) -> None:
    with serving() as other:
        other.pages = {"/x": price(5)}
        web.pages = {"/a": redirect(f"{other.address}/x"), "/b": redirect("/c"), "/c": price(1), "/d": redirect("/d")}
        given = options(web, "a", "b", "d")
        with feeding(tmp_path, given) as fed:
            fed.until(lambda: fed.values() == [("b", 1.0)] and fed.source.status.failing == 2)
            told = fed.source.status.failing_examples
            assert "not allowed" in told["a"]
            assert "more than 3 redirects" in told["d"]
        assert other.requests == []
        given["http"] = {**given["http"], "hosts": [other.host]}
        with feeding(tmp_path / "allowed", given) as fed:
            fed.until(lambda: ("a", 5.0) in fed.values())


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_too_large_is_not_taken(tmp_path: Path, web: Web, packed: bool) -> None:
    web.packed = packed
    web.pages = {"/a": json.dumps({"price": 1, "more": "x" * 100_000}).encode(), "/b": price(2)}
    assert not packed or len(gzip.compress(bytes(web.pages["/a"]))) < 10_000  # type: ignore[arg-type]
    with feeding(tmp_path, options(web, "a", "b", max_bytes=10_000)) as fed:
        fed.until(lambda: fed.values() == [("b", 2.0)] and fed.source.status.failing == 1)
        assert "more than 10,000 bytes" in fed.source.status.failing_examples["a"]


def test_hosts_from_a_file_must_be_allowed(tmp_path: Path, web: Web) -> None:
    web.pages = {"/a": price(1)}
    file = tmp_path / "urls.csv"
    file.write_text(f"element,worth\n{web.address}/a,2\nhttp://localhost:1/b,1\nftp://x/y,1\n,1\n{web.address}/c,-1\n")
    given = options(web, elements={"file": str(file)}, http={"hosts": [web.host]})
    with feeding(tmp_path / "state", given) as fed:
        fed.until(lambda: len(fed.rows()) == 1 and fed.feeder.status.dead == 4)
        assert fed.source.status.refused == 4
        file.write_text(f"element,worth\n{web.address}/d,1\n")
        web.pages["/d"] = price(4)
        fed.until(lambda: fed.values()[-1:] == [(f"{web.address}/d", 4.0)] and fed.source.status.elements == 1)


def test_what_is_refused_is_told_once(tmp_path: Path, web: Web) -> None:
    web.pages = {f"/{name}": price(1) for name in "abc"}
    file = tmp_path / "urls.csv"
    given = options(web, elements={"file": str(file)}, http={"hosts": [web.host]})
    file.write_text(f"element\n{web.address}/a\nhttp://localhost:1/b\nftp://x/y\n")
    with feeding(tmp_path / "state", given) as fed:
        for name in "bc":
            fed.until(lambda: fed.source.status.refused == 2 and fed.feeder.status.dead == 2)
            file.write_text(file.read_text() + f"{web.address}/{name}\nhttp://localhost:1/b\n")
            fed.until(lambda name=name: (f"{web.address}/{name}", 1.0) in fed.values())  # type: ignore[misc]
        assert (fed.source.status.refused, fed.feeder.status.dead) == (2, 2)


def test_a_budget_of_bytes_is_kept(tmp_path: Path, web: Web) -> None:
    web.validators = False
    names = [f"e{number}" for number in range(5)]
    web.pages = {f"/{name}": json.dumps({"price": 1, "more": "x" * 5000}).encode() for name in names}
    given = {key: value for key, value in options(web, *names).items() if key != "budget"}
    with feeding(tmp_path, {**given, "budget_bytes": "100 kB"}) as fed:
        began = time.monotonic()
        fed.until(lambda: fed.source.status.polls >= 60)
        passed = time.monotonic() - began
        assert fed.source.status.bytes <= 100_000 * (passed + 1.0)


def test_a_listed_address_is_checked_before_anything_runs(web: Web) -> None:
    source = create("mirror", options(web, "ftp://x/y", http={}), stream())
    assert isinstance(source, MirrorSource)
    with pytest.raises(UserError, match="not an address of HTTP"):
        source.check()


def test_a_part_of_a_body_counts(tmp_path: Path, web: Web) -> None:
    def stuck(request: Any) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "100000")
        request.end_headers()
        request.wfile.write(bytes(50_000))
        request.wfile.flush()
        time.sleep(2.0)

    web.pages = {"/a": stuck}
    given = {**options(web, "a", timeout=1.0), "budget": None, "budget_bytes": 1_000_000}
    with feeding(tmp_path, given) as fed:
        fed.until(lambda: fed.source.status.failures == 1)
        assert fed.source.status.bytes > 50_000


def test_what_a_closed_host_does_not_use_others_have(tmp_path: Path, web: Web) -> None:
    def busy(request: Any) -> None:
        request.answer(429, b"", {"Retry-After": "300"})

    with serving() as other:
        web.pages = {f"/{number}": price(1) for number in range(5)}
        other.pages = {f"/{number}": price(2) for number in range(5)}
        here, there = ([f"{each.address}/{number}" for number in range(5)] for each in (web, other))
        given = {**options(web, *here, *there, learn=False), "http": {}}
        with feeding(tmp_path, given) as fed:

            def share() -> float:
                planned = {each.element: each.polls_per_s or 0.0 for each in fed.source.rates()}
                return sum(planned.get(name, 0.0) for name in here) / 50.0

            fed.until(lambda: len(fed.rows()) == 10 and 0.45 < share() < 0.55)
            other.pages = dict.fromkeys(other.pages, busy)
            fed.until(lambda: share() > 0.95)
            fed.until(lambda: "closed" in (fed.log.source_position("prices") or {}))
        asked = len(other.requests)
        with feeding(tmp_path, given) as fed:
            fed.until(lambda: share() > 0.95)
        assert len(other.requests) == asked
