"""The Python on the pages runs, and the pages name what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from freshet.app.declared.config import (
    AppSection,
    ExpectSection,
    FunctionSection,
    OperatorSection,
    QuerySection,
    RetentionSection,
    SparkSection,
    StreamSection,
    TableSection,
)
from freshet.bench.registry import BENCHES
from freshet.kernels.expressions.compiler import FUNCTIONS
from freshet.kernels.folds.compile import KERNELS
from freshet.model.operators.codec import KINDS
from freshet.policies.registry import POLICIES
from freshet.reproduce.registry import CLAIMS
from freshet.sinks import KINDS as SINKS
from freshet.sources import KINDS as SOURCES

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT) for path in [ROOT / "README.md", ROOT / "examples/README.md", *(ROOT / "docs").rglob("*.md")]
)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`(freshet/[\w/]+)\.py`[^`]*\Z")
"""The name of a file, as the last one in front of a block."""


def blocks(page: Path) -> list[str]:
    return BLOCK.findall((ROOT / page).read_text())


@pytest.mark.spark
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=str)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    registries: tuple[dict[Any, Any], ...] = (POLICIES, SOURCES, SINKS, KINDS, KERNELS, FUNCTIONS, BENCHES, CLAIMS)
    kept = [dict(registry) for registry in registries]
    try:
        namespace: dict[str, object] = {"__name__": "page"}
        shown = 0
        for block in BLOCK.finditer((ROOT / page).read_text()):
            exec(compile(block[1], str(page), "exec", dont_inherit=True), namespace)
            if file := FILE.search(block.string[shown : block.start()]):
                # What follows may import it, as if it were in the tree.
                module = ModuleType(file[1].replace("/", "."))
                vars(module).update(namespace, __name__=module.__name__)
                monkeypatch.setitem(sys.modules, module.__name__, module)
            shown = block.end()
    finally:
        for registry, before in zip(registries, kept, strict=True):
            registry.clear()
            registry.update(before)


def test_the_test_file_of_the_page_on_testing_passes_as_it_is_given(tmp_path: Path) -> None:
    [file] = [block for block in blocks(Path("docs/testing.md")) if block.startswith("# test_orders.py\n")]
    (tmp_path / "test_orders.py").write_text(file)
    # The folder of the tests that run now must not be the root of these.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "test_orders.py"]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert done.stdout.splitlines()[-1].startswith("3 passed"), done.stdout


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text):
        if not target.startswith("http"):
            assert (ROOT / page.parent / target).exists(), target


def keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


@pytest.mark.parametrize(
    "model",
    [
        AppSection,
        SparkSection,
        StreamSection,
        TableSection,
        FunctionSection,
        OperatorSection,
        QuerySection,
        ExpectSection,
        RetentionSection,
    ],
)
def test_the_configuration_reference_has_every_key(model: type[BaseModel]) -> None:
    text = (ROOT / "docs/configuration.md").read_text()
    assert [key for key in keys(model) if f"| `{key}` |" not in text] == []


@pytest.mark.parametrize("options", [kinds[name][0] for kinds in (SOURCES, SINKS) for name in kinds.names()])
def test_the_configuration_reference_has_every_option(options: type[BaseModel]) -> None:
    text = (ROOT / "docs/configuration.md").read_text()
    assert [key for key in keys(options) if f"`{key}`" not in text] == []


NAMED = (
    "queries", "operators", "streams", "sources", "mirrors", "failing_examples", "sinks", "tables", "changes",
    "versions", "spark", "ways", "classes", "missing", "measures", "blocked_by", "joins",
)  # fmt: skip
"""Tables of the report whose keys are names."""


def report_keys(values: dict[str, Any], above: str = "", named: bool = False) -> set[str]:
    """Every key of a report, with names as NAME."""
    found: set[str] = set()
    for key, value in values.items():
        place = f"{above}{'NAME' if named else key}"
        if value == {} and key in NAMED and not named:
            place += ".NAME"  # a table of names that has none now
        inside = isinstance(value, dict) and bool(value)
        # The counts of queries stand in a table that is called like the table of queries.
        found |= report_keys(value, f"{place}.", not named and key in NAMED) if inside else {place}
        for each in value if isinstance(value, list) else ():
            found |= report_keys(each, f"{place}.") if isinstance(each, dict) else set()
    return found


def test_the_page_of_the_report_is_made_from_its_types() -> None:
    from freshet.app.reports.page import page

    assert (ROOT / "docs/report.md").read_text() == page(), "python -m freshet.app.reports.page > docs/report.md"


@pytest.mark.spark
def test_the_page_of_the_report_has_every_key_of_a_report(tmp_path: Path) -> None:
    import freshet

    app = freshet.App(
        "keys", state=tmp_path / "state", master="local[2]", spark={"spark.ui.enabled": "false"}, policy="fas-mcq",
        expect={"response": "1 s"},
    )  # fmt: skip
    app.stream("s", "v int", source={"kind": "generator", "rate": 1000, "limit": 100})
    (tmp_path / "names.csv").write_text("v,name\n1,one\n")
    app.table("names", tmp_path / "names.csv", schema="v int, name string")
    (tmp_path / "v.json").write_text('{"v": 1}')
    polled = {"kind": "mirror", "elements": ["v.json", "gone.json"], "file": {"path": str(tmp_path)}, "format": "json"}
    app.stream("m", "v int", source={**polled, "budget": 20})
    memory = [{"kind": "memory"}]
    app.query("plain", "SELECT v FROM s WHERE v > 5", sinks=memory)
    app.query("promised", "SELECT v FROM s", curve=[(0, 1.0), (1, 0.0)], sinks=memory)
    app.stream("p", "v int")
    app.query("watched", "SELECT v FROM p", expect={"latency": "1 s"}, overload=["thin"], sinks=memory)
    for name in ("near", "far"):
        app.stream(name, "k bigint", ordered_by="k", disorder="3 rows")
    # In 64 KiB there is no room for all of these.
    memory_of_met: dict[str, Any] = {"join_memory": "64 KiB", "join_buffer": "ram"}
    app.query("met", "SELECT a.k FROM near a, far b WHERE a.k = b.k", sinks=memory, **memory_of_met)
    app.query("often", "SELECT count(*) AS n FROM p [RANGE 1 s] PERIOD 500 ms DEADLINE 1 ms", sinks=memory)
    with app.start() as run:
        run.thin("watched", 0.5)
        run.push("p", [{"v": number} for number in range(1000)])
        run.push("near", [{"k": number} for number in range(3000)])
        run.wait(3.0)
        assert run.drain(timeout=600.0)
    report: dict[str, Any] = dict(run.report())
    page = set(re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs/report.md").read_text(), re.MULTILINE))
    tables = {key for key in page if any(other.startswith(f"{key}.") for other in page)}
    assert report_keys(report) - page == set(), "keys that the page does not name"
    # A Spark that runs already may have no slot for residents.
    absent = {key for key in page if key.startswith("residents.present.") and not report["residents"]["present"]}
    assert page - tables - absent - report_keys(report) == set(), "keys that no report has"
