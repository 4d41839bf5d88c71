"""``freshet kinds``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from freshet.model.plugins import Registry

EXAMPLES: Final = """\b
Examples:
  freshet kinds
"""
_SEE: Final = re.compile(r" \(see [^)]*\)")
_ROLE: Final = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")


def kinds() -> None:
    """List the kinds of sources and sinks, and the functions of installed packages.

    docs/configuration.md has the options of what is built in. Other packages bring theirs by entry points; see
    docs/extending.md. `freshet policies` lists policies.
    """
    from freshet.app.declared.functions import PACKAGED
    from freshet.sinks import KINDS as SINKS
    from freshet.sources import KINDS as SOURCES

    _show('Sources, as in source = {kind = "push"}', SOURCES, lambda name: _summary(SOURCES[name][1]))
    _show('Sinks, as in sinks = [{kind = "memory"}]', SINKS, lambda name: _summary(SINKS[name][1]))
    _show("Functions of packages, besides those of Spark SQL and of [functions]", PACKAGED, _form)


def _show(title: str, registry: Registry[Any], describe: Callable[[str], str]) -> None:
    """Prints the names of a registry, each with what it is, and then what is wrong with those of packages."""
    from freshet.model import UserError

    known, problems = {}, []
    for name in registry.names():
        package = registry.package(name)
        try:
            known[name] = describe(name) + (f" (of {package})" if package else "")
        except UserError as error:
            problems.append(str(error))
    print(f"{title}:")
    wide = max(map(len, known), default=0)
    for name, summary in known.items() or [("none", "")]:
        print(f"  {name:<{wide}}  {summary}".rstrip())
    for problem in dict.fromkeys([*registry.problems(), *problems]):
        print(f"Note: {problem}")


def _summary(made: object) -> str:
    """The first sentence of what a class says of itself."""
    paragraph = " ".join((inspect.getdoc(made) or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.) ", _ROLE.sub(r"\1", _SEE.sub("", paragraph)).replace("``", ""))[0]


def _form(name: str) -> str:
    from freshet.app.declared.functions import packaged_function
    from freshet.model.schema import type_text

    function = packaged_function(name.lower())
    assert function is not None, "it is in the registry"
    return f"({', '.join(map(type_text, function.takes))}), returns {type_text(function.returns)}"
