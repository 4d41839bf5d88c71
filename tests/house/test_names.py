"""One name for a class or a type has one meaning, and what is private stays in its module."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "freshet").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def named_types(module: ast.Module, place: str) -> Iterator[tuple[str, str]]:
    """Names of classes and type aliases with what they stand for: an alias may be written twice, a class may not."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            yield node.name, f"class at {place}:{node.lineno}"
    for node in module.body:
        name, value = assigned(node)
        if value is not None and is_type_name(name) and not is_type_variable(value):
            yield name, ast.unparse(value).replace("npt.", "")


def assigned(node: ast.stmt) -> tuple[str, ast.expr | None]:
    """What a line of a module gives a name to, where it may be a type."""
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]), node.value
    if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
        return ast.unparse(node.target), node.value
    return "", None


def is_type_name(name: str) -> bool:
    return name.lstrip("_")[:1].isupper() and not name.isupper()


def is_type_variable(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "TypeVar"


def repeated(modules: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Names that stand for more than one thing."""
    found: dict[str, set[str]] = defaultdict(set)
    for place, module in modules.items():
        for name, meaning in named_types(module, place):
            found[name].add(meaning)
    return {name: meanings for name, meanings in found.items() if len(meanings) > 1}


ALLOWED = {
    "Input": "what an operator reads: a form names the stream, a unit the train of it or the chain before",
}
"""Names for one idea that is written down in two forms, with the idea."""


def test_a_name_has_one_meaning() -> None:
    found = repeated({str(path.relative_to(ROOT)): tree(path) for path in SOURCES})
    assert {name: meanings for name, meanings in found.items() if name not in ALLOWED} == {}
    assert set(ALLOWED) <= set(found), "what is not repeated needs no leave"


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        ("class Place: ...", "class Place: ...", True),
        ("class Place: ...", "Place = tuple[int, str]", True),
        ("Place: TypeAlias = int", "Place = tuple[int, str]", True),
        ("Floats = NDArray[np.float64]", "Floats = npt.NDArray[np.float64]", False),
        ("Kind = TypeVar('Kind')", "class Kind: ...", False),
    ],
)
def test_a_clash_is_noticed(one: str, other: str, clash: bool) -> None:
    assert bool(repeated({"one.py": ast.parse(one), "other.py": ast.parse(other)})) is clash


FOREIGN = {
    "_exit",
    "_replace",
    "_active_spark_context",
    "_accumulatorServer",
    "_gateway",
    "_jdf",
    "_jsc",
    "_jsparkSession",
    "_jvm",
}
"""Names of other libraries that only look private, or that PySpark has no other way to."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def foreign_privates(module: ast.Module) -> Iterator[str]:
    """Private names that a module imports from others of the project, or reads from what it has imported."""
    modules = set()
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("freshet", "tests"):
            yield from (f"{node.module}.{each.name}" for each in node.names if is_private(each.name))
            modules |= {each.asname or each.name for each in node.names if each.name.islower()}
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and ast.unparse(node.value) in modules:
            yield ast.unparse(node)


def touched_privates(module: ast.Module) -> Iterator[str]:
    """Private attributes that a module reads, and that none of its own classes and functions has."""
    own = {node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    attributes = [node for node in ast.walk(module) if isinstance(node, ast.Attribute) and is_private(node.attr)]
    own |= {node.attr for node in attributes if ast.unparse(node.value) in ("self", "cls")}
    own |= {ast.unparse(node.target) for node in ast.walk(module) if isinstance(node, ast.AnnAssign)}
    yield from (ast.unparse(node) for node in attributes if node.attr not in own | FOREIGN)


def test_private_names_are_not_imported() -> None:
    found = {str(path.relative_to(ROOT)): list(foreign_privates(tree(path))) for path in (*SOURCES, *TESTS)}
    assert {place: names for place, names in found.items() if names} == {}


def test_private_attributes_stay_in_their_module() -> None:
    found = {str(path.relative_to(ROOT)): list(touched_privates(tree(path))) for path in SOURCES}
    assert {place: names for place, names in found.items() if names} == {}


def test_a_private_name_is_noticed() -> None:
    module = ast.parse("from freshet.log import _Writer, log\nlog._open\nlog.read()._lock\nself._mine\nother._mine")
    assert list(foreign_privates(module)) == ["freshet.log._Writer", "log._open"]
    assert list(touched_privates(module)) == ["log._open", "log.read()._lock"]
