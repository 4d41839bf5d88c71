"""The start of a run: masters that are not there, signals, what a start that failed leaves behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.cli.commands import Command

from freshet.log import Log
from freshet.model import FreshetError
from freshet.spark.session.masters import check_reachable

FRESHET = [sys.executable, "-m", "freshet"]
APP = """
[spark]
master = "{master}"
settings = {{"spark.ui.enabled" = "true"}}
[streams.s]
schema = "value bigint"
source = {{kind = "spark", format = "{format}"}}
[streams.t]
schema = "v int"
[queries.q]
sql = "SELECT value FROM s"
"""


def write(folder: Path, master: str = "local[1]", format_: str = "rate") -> None:
    (folder / "app.toml").write_text(APP.format(master=master, format=format_))


def processes(word: str) -> list[int]:
    """Processes with a word among their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                arguments = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in arguments:
                found.append(int(entry.name))
    return found


@contextmanager
def nobody() -> Iterator[int]:
    """A port where nobody listens, and nobody else will."""
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_a_master_that_cannot_be_reached_is_named_with_the_reason_and_nothing_is_made(tmp_path: Path) -> None:
    with nobody() as port:
        master = f"spark://127.0.0.1:{port},no-such-host.invalid:7077"
        write(tmp_path, master)
        done = subprocess.run([*FRESHET, "run", "app.toml"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"master {master} cannot be reached: 127.0.0.1:{port}: Connection refused; no-such-host.inv")
    assert [path.name for path in tmp_path.iterdir()] == ["app.toml"]


def test_one_of_several_masters_is_enough() -> None:
    with nobody() as port, closing(socket.create_server(("127.0.0.1", 0))) as server:
        check_reachable(f"spark://127.0.0.1:{port},127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(FreshetError, match="Connection refused"):
            check_reachable(f"spark://127.0.0.1:{port}")
    check_reachable("local[2]")


def test_a_master_that_does_not_answer_is_not_waited_for() -> None:
    # A full queue of connections: the system answers no more of them.
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        address = server.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(address)
        with pytest.raises(FreshetError, match="no answer"):
            check_reachable(f"spark://127.0.0.1:{address[1]}", patience=1.0)
        for each in waiting:
            each.close()


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_start_that_fails_claims_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    # Only Spark knows that there is no such format.
    write(tmp_path, format_="no_such_format")
    monkeypatch.chdir(tmp_path)
    done = command("run", "app.toml")
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith(
        "app.toml: streams.s.source.format: Spark has no no_such_format: name its package in [spark.settings]: "
    )
    assert not (tmp_path / "state" / "application").exists()
    with Log.open(tmp_path / "state") as log:
        assert log.streams() == {}


@pytest.mark.spark
def test_what_java_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    # The text of such an error is in the JVM, which is ended with the start.
    write(tmp_path)
    path = tmp_path / "app.toml"
    path.write_text(path.read_text().replace('"spark.ui.enabled" = "true"', '"spark.driver.maxResultSize" = "large"'))
    done = subprocess.run([*FRESHET, "run", "app.toml"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    started, reason = done.stderr.splitlines()
    assert started == "Spark starts ..."
    assert reason.startswith("Spark does not start on local[1]: ")
    assert "spark.driver.maxResultSize" in reason
    assert processes(f"freshet.spark.log={tmp_path / 'state'}") == []
    assert not (tmp_path / "state" / "application").exists()


@pytest.mark.spark
def test_what_a_run_writes_and_where_spark_listens_is_for_its_owner(tmp_path: Path) -> None:
    write(tmp_path)
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_IP"}
    command = [*FRESHET, "run", "app.toml"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, umask=0o022, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            until = time.monotonic() + 600
            while not list((tmp_path / "state" / "sources" / "s" / "commits").glob("*")):
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.2)
            # A process that Java is about to start is called like Java itself for a moment.
            java = min(processes(f"freshet.spark.log={tmp_path / 'state'}"))
            listening = addresses_of(java)
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate()
        finally:
            process.kill()
    assert process.returncode == 0, errors
    assert (tmp_path / "state" / "application").read_text() == "app"
    assert len(listening) >= 1
    assert listening <= {"127.0.0.1", "::1"}, listening
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in (tmp_path / "state").rglob("*")}
    modes[tmp_path / "state"] = stat.S_IMODE((tmp_path / "state").stat().st_mode)
    assert len(modes) > 10
    assert {path: oct(mode) for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}


def addresses_of(process: int) -> set[str]:
    """Where a process listens."""
    inodes = set()
    for entry in Path(f"/proc/{process}/fd").iterdir():
        try:
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(entry))
        except OSError:
            continue
        inodes |= {found.group(1)} if found else set()
    heard = set()
    for family, table in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                heard.add(_address(family, fields[1].split(":")[0]))
    return heard


def _address(family: int, text: str) -> str:
    words = [bytes.fromhex(text[place : place + 8])[::-1] for place in range(0, len(text), 8)]
    return socket.inet_ntop(family, b"".join(words)).removeprefix("::ffff:")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("number", "code", "with_jvm"),
    [(signal.SIGINT, 130, False), (signal.SIGTERM, 143, True)],
)
def test_a_signal_during_the_start_ends_it_and_leaves_no_jvm(
    number: signal.Signals, code: int, with_jvm: bool, tmp_path: Path
) -> None:
    write(tmp_path)
    process = subprocess.Popen(
        [*FRESHET, "run", "app.toml"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "Spark starts ...\n"
    while with_jvm and not processes(f"freshet.spark.log={tmp_path / 'state'}"):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    rest = process.stderr.read()
    assert process.wait() == code, rest
    assert [line for line in rest.splitlines() if not line.endswith(" ...")] == [
        f"{number.name} during the start: nothing has run"
    ]
    assert processes(f"freshet.spark.log={tmp_path / 'state'}") == []
    assert not (tmp_path / "state" / "application").exists()
