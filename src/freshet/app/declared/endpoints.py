"""The ends of an application: from what is declared about sources and sinks to the things themselves."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from freshet import sinks, sources
from freshet.app.declared.places import why_no_file, why_no_folder
from freshet.app.declared.problems import Problem, did_you_mean, noted
from freshet.app.declared.spec import QuerySpec, SinkLike, SourceLike, StreamSpec
from freshet.app.declared.validation import problems_of
from freshet.model import Stream, UserError
from freshet.model.places import why_not_local
from freshet.model.plugins import Registry
from freshet.sinks import CallbackOptions, CallbackSink, Sink
from freshet.sources import Checkable, Source
from freshet.spark.session.packages import why_missing

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class NamedSink:
    """A declared sink with the name of its place in the output."""

    query: str
    name: str
    declared: SinkLike

    @property
    def reader(self) -> str:
        """Its name as a reader of the log."""
        return f"{self.query}/{self.name}"

    @property
    def group(self) -> Literal["quick", "tables", "files"] | None:
        """The sinks that it is written together with; None: it runs code of others, and that may be slow."""
        kind = str(self.declared.get("kind")) if isinstance(self.declared, Mapping) else "callback"
        if kind == "callback" or sinks.KINDS.package(kind) is not None:
            return None
        return "files" if kind == "parquet" else "tables" if kind == "table" else "quick"

    def make(self) -> Sink:
        """The sink itself, not opened yet."""
        if isinstance(self.declared, Mapping):
            options = {key: value for key, value in self.declared.items() if key not in ("kind", "name")}
            return sinks.create(str(self.declared.get("kind")), options)
        if callable(self.declared):
            return CallbackSink(CallbackOptions(function=self.declared))
        return self.declared


_PATHS: Final[dict[str, dict[str, Any]]] = {
    "path": {},
    "elements": {"file": {}},
    "file": {"path": {}},
    "sql": {"database": {}},
}
"""Keys of sources and sinks that are paths, in tables that may lie within each other."""


def placed(options: dict[str, Any], folder: Path, keys: Mapping[str, Any] = _PATHS) -> dict[str, Any]:
    """Options whose paths, if they have any, are relative to a folder.

    >>> placed({"kind": "mirror", "elements": {"file": "urls.csv"}}, Path("apps"))
    {'kind': 'mirror', 'elements': {'file': 'apps/urls.csv'}}
    """
    changed = dict[str, Any]()
    for key, inner in keys.items():
        value = options.get(key)
        if inner and isinstance(value, dict):
            changed[key] = placed(value, folder, inner)
        # An address is left as it is, for the check to refuse.
        elif not inner and isinstance(value, str) and why_not_local(value) is None:
            changed[key] = str(folder / value)
    return options | changed


def make_source(declared: SourceLike, stream: Stream) -> Source:
    """The source of a stream."""
    if isinstance(declared, Mapping):
        options = {key: value for key, value in declared.items() if key != "kind"}
        return sources.create(str(declared.get("kind")), options, stream)
    return declared


def named_sinks(spec: QuerySpec) -> list[NamedSink]:
    """The sinks of a query with their names: as given, else by kind, with a number from the second on.

    >>> [sink.name for sink in named_sinks(QuerySpec("q", "", sinks=({"kind": "console"}, {"kind": "console"}, print)))]
    ['console', 'console_2', 'callback']
    """
    taken: Counter[str] = Counter()
    named = []
    for declared in spec.sinks:
        if isinstance(declared, Mapping):
            base = str(declared.get("name") or declared.get("kind"))
        else:
            base = "callback" if callable(declared) else type(declared).__name__
        taken[base] += 1
        name = base if taken[base] == 1 else f"{base}_{taken[base]}"
        named.append(NamedSink(spec.name, name, declared))
    return named


def check_sources(specs: Iterable[StreamSpec], settings: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with the sources of streams, given the settings of Spark."""
    for spec in specs:
        place, declared, name = f"streams.{spec.stream.name}.source", spec.source, spec.stream.name
        if not isinstance(declared, Mapping):
            continue
        if wrong := list(check_options(declared, sources.KINDS, place)):
            yield from wrong
            continue
        if declared["kind"] == "spark" and (missing := why_missing(declared["format"], settings)) is not None:
            wrong.append(Problem(f"{place}.format", missing))
        prefix = f"stream {name}: source {declared['kind']}: "
        with noted(wrong, place, prefix), closing(make_source(declared, spec.stream)) as source:
            if isinstance(source, Checkable):
                source.check()
        yield from wrong


def check_mirror_queries(
    sources: Mapping[str, object], queries: Collection[str], columns: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    """What is wrong with the queries that name elements of mirrors, and with their accesses.

    Args:
        sources: By their place.
        queries: Names of all queries.
        columns: Of streams, and of queries as far as they are known.

    >>> source = {"elements": {"query": "find"}, "worth": {"accesses": "clicks", "weight": "points"}}
    >>> known = {"clicks": ["element", "user"], "found": ["element"]}
    >>> for each in check_mirror_queries({"streams.s.source": source}, ["found"], known):
    ...     print(each.line())
    streams.s.source.elements.query: there is no query 'find' (did you mean 'found'?)
    streams.s.source.worth.accesses: clicks has no column points: it has element, user
    """
    for place, source in sources.items():
        for key, inner, kind, known in (
            ("elements", "query", "query", queries),
            ("worth", "accesses", "stream or query", {*columns, *queries}),
        ):
            told = source.get(key) if isinstance(source, Mapping) else None
            name = told.get(inner) if isinstance(told, Mapping) else None
            if not isinstance(told, Mapping) or not isinstance(name, str):
                continue
            if name not in known:
                yield Problem(f"{place}.{key}.{inner}", f"there is no {kind} {name!r}{did_you_mean(name, known)}")
                continue
            wanted = [str(told.get("column", "element")), *([str(told["weight"])] if told.get("weight") else [])]
            if missing := [each for each in wanted if each not in columns.get(name, wanted)]:
                has = f"it has {', '.join(columns[name])}"
                yield Problem(f"{place}.{key}.{inner}", f"{name} has no column {', '.join(missing)}: {has}")


def check_sinks(specs: Iterable[QuerySpec], columns: Mapping[str, Sequence[str]] | None = None) -> Iterator[Problem]:
    """What is wrong with the sinks of queries, given their columns as far as they are known."""
    taken: dict[tuple[Any, ...], str] = {}
    for spec in specs:
        for number, named in enumerate(named_sinks(spec)):
            place, declared = f"queries.{spec.name}.sinks[{number}]", named.declared
            if not isinstance(declared, Mapping):
                continue
            options = {key: value for key, value in declared.items() if key != "name"}
            yield from check_options(options, sinks.KINDS, place)
            yield from _wrong_path(options, place, taken)
            yield from _wrong_keys(options, place, (columns or {}).get(spec.name))


def _wrong_path(options: Mapping[str, Any], place: str, taken: dict[tuple[Any, ...], str]) -> Iterator[Problem]:
    path = options.get("path")
    if not isinstance(path, str | Path) or why_not_local(path) is not None:
        return
    path, folder = Path(os.path.abspath(Path(path).expanduser())), options.get("kind") == "parquet"
    what = "table" if options.get("kind") == "table" else "folder" if folder else "file"
    # Several sinks may each have a table of one database.
    other = taken.setdefault((path, options.get("table") if what == "table" else None), place)
    if other != place:
        yield Problem(f"{place}.path", f"is the {what} of {other} already; choose another")
    if reason := why_no_folder(path) if folder else why_no_file(path):
        yield Problem(f"{place}.path", reason)


def _wrong_keys(options: Mapping[str, Any], place: str, columns: Sequence[str] | None) -> Iterator[Problem]:
    keys = options.get("keys")
    if options.get("kind") != "table" or columns is None or not isinstance(keys, list):
        return
    for key in keys:
        if isinstance(key, str) and key not in columns:
            hint = did_you_mean(key, columns) or f": it has {', '.join(columns)}"
            yield Problem(f"{place}.keys", f"the query has no column {key!r}{hint}")


def check_options(
    declared: Mapping[str, Any], kinds: Registry[tuple[type[Model], Any]], place: str
) -> Iterator[Problem]:
    """What is wrong with the options of a source or a sink by itself."""
    kind = str(declared.get("kind") or "")
    try:
        found = kind in kinds
    except UserError as error:
        yield Problem(f"{place}.kind", str(error))
        return
    if not found:
        names = kinds.names()
        known = ", ".join(names)
        wrong = f"must be one of {known}, not {kind!r}{did_you_mean(kind, names)}" if kind else ""
        yield Problem(f"{place}.kind", wrong or f"is missing: use one of {known}")
        return
    model = kinds[kind][0]
    options = {key: value for key, value in declared.items() if key != "kind"}
    try:
        model.model_validate(options)
    except ValidationError as error:
        yield from problems_of(error, model, options, place)
