"""The package as it is installed: a wheel in an environment of its own, outside of the tree, runs every example."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FILES = sorted(path.relative_to(EXAMPLES) for suffix in ("toml", "py") for path in EXAMPLES.glob(f"*/*.{suffix}"))
APPLICATIONS = [file for file in FILES if file.stem == file.parent.name]
SAID = {"orders": "paid", "prices": "breakfast: "}
"""What each program prints of its answers."""

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment with the wheel; what Freshet needs is taken from this one."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(build, cwd=folder, check=True)
    [wheel] = folder.glob("freshet-*.whl")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    python = folder / "venv/bin/python"
    install = [*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, cwd=folder, check=True)
    (site,) = folder.glob("venv/lib/python*/site-packages")
    # Of a folder that is named in such a file, the files of this kind are not read: an editable Freshet is not seen.
    (site / "needed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return python.parent


def run(folder: Path, *command: str | Path) -> str:
    """What a program prints that knows nothing of the tree."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}"
    return done.stdout


def test_it_is_the_wheel_that_runs(programs: Path, tmp_path: Path) -> None:
    place = run(tmp_path, programs / "python", "-c", "import freshet; print(freshet.__file__)")
    assert place.startswith(str(programs.parent))


@pytest.mark.parametrize("file", APPLICATIONS, ids=lambda file: file.stem)
def test_an_example_runs(programs: Path, tmp_path: Path, file: Path) -> None:
    example = tmp_path / file.stem
    shutil.copytree(EXAMPLES / file.parent, example, ignore=shutil.ignore_patterns("state", "out", "report.json"))
    if file.suffix == ".py":
        assert SAID[file.stem] in run(example, programs / "python", file.name)
        return
    assert ": right: " in run(example, programs / "freshet", "check", file.name)
    run(example, programs / "freshet", "run", file.name)
    queries = run(
        example, programs / "python", "-c", f"import freshet; print(*freshet.App.from_toml({file.name!r}).queries)"
    )
    rows = {
        name: run(example, programs / "freshet", "read", file.name, name, "--as", "jsonl") for name in queries.split()
    }
    assert rows
    assert all(rows.values()), "every query has answered"
