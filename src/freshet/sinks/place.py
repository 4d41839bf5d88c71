"""Functions named by their place, ``"package.module:name"``: first found without running any code, then imported."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_LITERALS = (ast.Constant, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.JoinedStr)


def check_place(text: str) -> None:
    """Checks whether a place can be right. It imports nothing: the code of a module runs when the application runs, not
    when it is checked.

    >>> check_place("json:dumps")
    >>> check_place("json:dmps")
    Traceback (most recent call last):
    ValueError: module json has no function 'dmps' (did you mean 'dumps'?)

    Raises:
        ValueError: There is no such module, or its text has no such name.
    """
    module, name = _parts(text)
    if module in sys.modules:
        # It has already been run.
        load(text)
        return
    tree = _tree(_find(module), module)
    if tree is not None:
        _look(tree, module, name)


def load(text: str) -> Callable[..., Any]:
    """Imports a function.

    Raises:
        ValueError: Its module cannot be imported, or has no such function.
    """
    found = load_anything(text)
    if not callable(found):
        module, _, name = text.partition(":")
        raise ValueError(f"{name} of module {module} is no function but {type(found).__name__}")
    return found  # type: ignore[no-any-return]


def load_anything(text: str) -> Any:
    """Imports what a place names.

    Raises:
        ValueError: Its module cannot be imported, or has no such name.
    """
    module, name = _parts(text)
    return _attribute(_module(module), module, name)


def _parts(text: str) -> tuple[str, str]:
    module, _, name = text.partition(":")
    if not module or not name:
        raise ValueError(f"must be the place of a function as 'package.module:name', not {text!r}")
    return module, name


def _find(module: str) -> ModuleSpec:
    """The module's file. It does not run the packages around it, as ``importlib.util.find_spec`` would."""
    above, _, _ = module.rpartition(".")
    path = _find(above).submodule_search_locations if above else None
    spec = None if above and path is None else _spec(module, path)
    if spec is None:
        raise ValueError(f"there is no module {module!r} beside the application file or on PYTHONPATH")
    return spec


def _spec(name: str, path: Any) -> ModuleSpec | None:
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__spec__ is not None:
        return loaded.__spec__
    for finder in sys.meta_path:
        spec = finder.find_spec(name, path, None)
        if spec is not None:
            return spec
    return None


def _tree(spec: ModuleSpec, module: str) -> ast.Module | None:
    """The module's text, parsed; None if it has none, such as a module written in C."""
    try:
        source = spec.loader.get_source(spec.name)  # type: ignore[union-attr]
        return None if source is None else ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"module {module} cannot be imported: SyntaxError: {error.msg}, line {error.lineno}") from None
    except (AttributeError, ImportError, OSError, ValueError, RecursionError, MemoryError):
        return None


def _look(tree: ast.Module, module: str, name: str) -> None:
    first = name.split(".")[0]
    bound = dict(_bound(tree.body))
    if first not in bound and not _unforeseeable(tree):
        known = [word for word, value in bound.items() if isinstance(value, _CODE) and not word.startswith("_")]
        raise ValueError(f"module {module} has no function {name!r}{_close(name, known)}")
    if first == name and isinstance(bound.get(name), _LITERALS):
        raise ValueError(f"{name} of module {module} is no function but a value")


_CODE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Import, ast.ImportFrom)


def _bound(body: list[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    """Names that a module gets when it is imported, with what binds them."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name, statement
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name.split(".")[0], statement) for alias in statement.names)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            alone = len(targets) == 1 and isinstance(targets[0], ast.Name)
            for name in (node for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)):
                yield name.id, (statement.value if alone and statement.value is not None else statement)
        else:
            yield from _inside(statement)


def _inside(statement: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    """Names that an if, a try, a with or a loop binds."""
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name.split(".")[0], node) for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node


def _unforeseeable(tree: ast.Module) -> bool:
    """Whether a module may have names that its text does not show."""
    calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    stars = any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree))
    own = any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body)
    return stars or own or bool(calls & {"globals", "vars", "exec", "eval", "setattr"})


def _module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        inner = "" if error.name and name.startswith(error.name) else f" (imported by {name})"
        where = "beside the application file or on PYTHONPATH"
        raise ValueError(f"there is no module {error.name!r}{inner} {where}") from None
    except (Exception, SystemExit) as error:  # whatever the user's module does when it is imported
        reason = next(iter(str(error).splitlines()), "")
        raise ValueError(f"module {name} cannot be imported: {type(error).__name__}: {reason}") from None


def _attribute(module: ModuleType, place: str, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = [word for word, value in vars(module).items() if callable(value) and not word.startswith("_")]
            raise ValueError(f"module {place} has no function {name!r}{_close(name, known)}")
        found = getattr(found, part)
    return found


def _close(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
