"""The mirrors of an application, and what its state folder knows of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from freshet.app import App
    from freshet.sources import MirrorOptions


@dataclass(frozen=True, slots=True)
class KnownMirror:
    """A mirror.

    Args:
        name: Its stream or table.
        options: Its options.
        column: The column with the element's name; None: there is none.
        records: What is known of each element.
        position: What is known of all together.
    """

    name: str
    options: MirrorOptions
    column: pa.Field | None
    records: Mapping[str, Any]
    position: Mapping[str, Any]

    @property
    def learned(self) -> Any:
        """What was learned of all elements together."""
        return self.position.get("learned")

    @property
    def counts(self) -> dict[str, int]:
        """What was counted over all runs."""
        from freshet.sources.mirror.book import COUNTS

        return {name: self.position.get(name, 0) for name in COUNTS}

    @property
    def unit(self) -> str:
        """The unit of the budget."""
        return "polls/s" if self.options.budget is not None else "bytes/s"


def known_mirrors(path: Path, name: str | None = None) -> list[KnownMirror]:
    """The mirrors of an application file, or the one of a stream or table.

    Raises:
        UserError: There is none.
    """
    from freshet.app import App
    from freshet.model import UserError

    found = mirrors_of(App.from_toml(path))
    chosen = [each for each in found if name in (None, each.name)]
    if not found:
        raise UserError(f"{path}: there is no mirror")
    if not chosen:
        raise UserError(f"{path}: {name!r} is no mirror; mirrors: {', '.join(each.name for each in found)}")
    return chosen


def mirrors_of(app: App) -> list[KnownMirror]:
    """All mirrors of an application."""
    from freshet.log import LogReader
    from freshet.log.store.examine import NoLog
    from freshet.model import version_stream

    options, records, positions = _options(app), dict[str, Mapping[str, Any]](), dict[str, Mapping[str, Any]]()
    try:
        with LogReader(app.state) as log:
            held = {each: version_stream(each) if each in app.tables else each for each in options}
            there = log.streams()
            records = {each: log.records(stream) for each, stream in held.items() if stream in there}
            stored = {each: log.source_position(held[each]) or {} for each in records}
            positions = {each: position.get("source", position) for each, position in stored.items()}
    except NoLog:
        pass  # it has not run yet
    return [
        KnownMirror(each, made, _column(app, each, made), records.get(each, {}), positions.get(each, {}))
        for each, made in options.items()
    ]


def _column(app: App, name: str, options: MirrorOptions) -> pa.Field | None:
    schema = app.tables[name].schema if name in app.tables else app.streams[name].stream.schema
    return schema.field(options.element_column) if options.element_column in schema.names else None


def _options(app: App) -> dict[str, MirrorOptions]:
    from freshet.app.declared.endpoints import check_options
    from freshet.app.declared.problems import refuse
    from freshet.sources import KINDS, MirrorOptions, parse

    declared = {name: (f"streams.{name}.source", spec.source) for name, spec in app.streams.items()}
    declared |= {name: (f"tables.{name}.source", spec.source or {}) for name, spec in app.tables.items()}
    found = {}
    for name, (place, source) in declared.items():
        if isinstance(source, Mapping) and source.get("kind") == "mirror":
            refuse(check_options(source, KINDS, place), app.origin)
            found[name] = parse(MirrorOptions, {key: value for key, value in source.items() if key != "kind"}, name)
    return found
