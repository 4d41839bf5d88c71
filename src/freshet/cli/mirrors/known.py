"""The mirrors of an application, and what its state folder knows of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freshet.app import App
    from freshet.sources import MirrorOptions


@dataclass(frozen=True, slots=True)
class KnownMirror:
    """A mirror: its stream or table, its options, the records of its elements, and what was learned of all together."""

    name: str
    options: MirrorOptions
    records: Mapping[str, Any]
    learned: Any = None


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

    options, records, learned = _options(app), dict[str, Mapping[str, Any]](), dict[str, Any]()
    try:
        with LogReader(app.state) as log:
            held = {each: version_stream(each) if each in app.tables else each for each in options}
            there = log.streams()
            records = {each: log.records(stream) for each, stream in held.items() if stream in there}
            positions = {each: log.source_position(held[each]) or {} for each in records}
            learned = {each: position.get("source", position).get("learned") for each, position in positions.items()}
    except NoLog:
        pass  # it has not run yet
    return [KnownMirror(each, options[each], records.get(each, {}), learned.get(each)) for each in options]


def _options(app: App) -> dict[str, MirrorOptions]:
    from freshet.sources import MirrorOptions, parse

    declared = {name: spec.source for name, spec in app.streams.items()}
    declared |= {name: spec.source for name, spec in app.tables.items() if spec.source is not None}
    return {
        name: parse(MirrorOptions, {key: value for key, value in source.items() if key != "kind"}, name)
        for name, source in declared.items()
        if isinstance(source, Mapping) and source.get("kind") == "mirror"
    }
