"""What the page on extending names as a file is put into a copy of the tree, with one line more, and used there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/extending.md").read_text()


def shown(file: str) -> str:
    """The block behind the name of a file."""
    found = re.search(rf"`freshet/{re.escape(file)}`.*?^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/extending.md does not show {file}"
    return found.group(1)


class Copy:
    """A copy of the package, to which something is added."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(ROOT / "src/freshet", folder / "freshet", ignore=shutil.ignore_patterns("__pycache__"))

    def add(self, file: str, registry: str, line: str, behind: str) -> None:
        """Adds a file, and one line behind the line of a registry that begins with a text."""
        known = self._folder / "freshet" / registry
        self.add_file(file)
        lines = known.read_text().splitlines(keepends=True)
        (place,) = (number for number, each in enumerate(lines) if each.startswith(behind))
        known.write_text("".join([*lines[: place + 1], f"    {line},\n", *lines[place + 1 :]]))

    def add_imported(self, file: str) -> None:
        """Adds a file, and the line that imports it at the end of its package."""
        self.add_file(file)
        module = f"freshet.{file.removesuffix('.py').replace('/', '.')}"
        with (self._folder / "freshet" / Path(file).parent / "__init__.py").open("a") as package:
            package.write(f"import {module}\n")

    def add_file(self, file: str) -> None:
        """Adds a file."""
        assert not (self._folder / "freshet" / file).exists()
        (self._folder / "freshet" / file).write_text(shown(file))

    def run(self, *arguments: str) -> str:
        """What a Python process prints that sees the copy."""
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(self._folder), os.environ.get("PYTHONPATH", "")])
        }
        command = [sys.executable, *arguments]
        done = subprocess.run(command, env=environment, cwd=self._folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


def test_a_policy(copy: Copy) -> None:
    copy.add("policies/shortest_queue.py", "policies/registry.py", '"shortest_queue"', "_MODULES")
    assert "shortest-queue" in copy.run("-m", "freshet", "policies")


COMPILED = """
import pyarrow as pa
from freshet.kernels import Program, why_not
from freshet.model import ARRIVAL, Filter, Project

rows = pa.table({"v": [-2, None, 0.5], ARRIVAL: [1, 2, 3]})
chain = [Filter("q.filter_1", "degrees(v) > 0"), Project("q.project", (("d", "degrees(v)"),))]
print(why_not(chain, rows.schema) or Program([chain], rows.schema).run(rows)[0].batch.to_pylist()[0]["d"])
"""


def test_a_function_of_sql(copy: Copy) -> None:
    assert "degrees" in copy.run("-c", COMPILED), "it is there already: choose another one for the page"
    copy.add_imported("kernels/expressions/degrees.py")
    assert copy.run("-c", COMPILED) == "28.64788975654116\n"


def test_an_operator_that_remembers(copy: Copy) -> None:
    copy.add_imported("model/operators/changes.py")
    copy.add_imported("kernels/folds/changes.py")
    copy.add_file("sql/flows/changes.py")
    found = re.search(r"^`lower.py` would.*?^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    copy.run("-c", found.group(1))
    # Whoever stores operators and whoever runs them knows it without being told.
    known = "from freshet.model.operators.codec import KINDS\nfrom freshet.kernels.folds.compile import KERNELS\n"
    assert copy.run("-c", f"{known}print(KINDS['changes'] in KERNELS)") == "True\n"


APP = """
[streams.numbers]
schema = "n bigint"
source = {kind = "countdown", start = 5}

[queries.large]
sql = "SELECT n FROM numbers WHERE n > 2"
sinks = [{kind = "total", path = "total", column = "n"}]
"""


def test_a_source_and_a_sink(copy: Copy, tmp_path: Path) -> None:
    copy.add("sources/countdown.py", "sources/__init__.py", '"countdown": "countdown"', "_MODULES")
    copy.add("sinks/total.py", "sinks/__init__.py", '"total": "total"', "_MODULES")
    (tmp_path / "app.toml").write_text(APP)
    copy.run("-m", "freshet", "check", "app.toml")
    (tmp_path / "app.toml").write_text(APP.replace("start = 5", "stop = 5").replace("column", "colum"))
    with pytest.raises(AssertionError) as caught:
        copy.run("-m", "freshet", "check", "app.toml")
    assert "streams.numbers.source.start: is missing" in str(caught.value)
    assert "queries.large.sinks[0].colum: unknown key (did you mean 'column'?)" in str(caught.value)


def test_a_benchmark(copy: Copy) -> None:
    copy.add("bench/hashing.py", "bench/registry.py", '"hashing"', "MODULES")
    found = json.loads(copy.run("-m", "freshet", "bench", "hashing", "--rounds", "2", "--json"))
    assert found["figures"]["rounds"] == 2
    low, high = found["spread"]["megabytes_per_second"]
    assert 0 < low <= found["figures"]["megabytes_per_second"] <= high


def test_a_claim(copy: Copy) -> None:
    copy.add("reproduce/coins.py", "reproduce/registry.py", '"coins": "Ars conjectandi (1713)"', "PAPERS")
    found = json.loads(copy.run("-m", "freshet", "reproduce", "coins", "--seeds", "2", "--json"))
    [claim] = found["claims"]
    assert (claim["id"], claim["ok"], len(claim["spread"])) == ("coins.fair", True, 2)
