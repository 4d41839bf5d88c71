"""Tables as they are declared: what is wrong with their files, and the mirrors of those that are polled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa

from freshet.app.declared.endpoints import check_options, make_source
from freshet.app.declared.problems import Problem, noted
from freshet.app.declared.spec import TableSpec
from freshet.model import Stream, UserError
from freshet.sources import KINDS

if TYPE_CHECKING:
    from freshet.sources.mirror.source import MirrorSource


def check_tables(specs: Iterable[TableSpec]) -> Iterator[Problem]:
    """What is wrong with the files and the mirrors of tables."""
    for spec in specs:
        if spec.file is None:
            yield from _check_mirror(spec)
            continue
        # Not before: an application without such a table is checked without it.
        from freshet.sources.table_file import FORMATS, read_table_file

        try:
            read_table_file(spec.file, spec.schema, spec.format)
        except UserError as error:
            key = "file" if spec.format in (None, *FORMATS) else "format"
            yield Problem(f"tables.{spec.name}.{key}", str(error))


def _check_mirror(spec: TableSpec) -> Iterator[Problem]:
    place = f"tables.{spec.name}.source"
    if wrong := list(check_options(spec.source or {}, KINDS, place)):
        yield from wrong
        return
    with noted(wrong, place, f"stream {spec.name}: source mirror: "), closing(mirror_of(spec)) as source:
        element_column(spec)
        source.check()
    yield from wrong


def mirror_of(spec: TableSpec) -> MirrorSource:
    """The source of a table that is a mirror.

    Raises:
        UserError: It is another kind of source, or its options are wrong.
    """
    from freshet.sources.mirror.source import MirrorSource

    if spec.source is None or spec.source.get("kind") != "mirror":
        raise UserError("source of a table must be of kind mirror")
    source = make_source(spec.source, Stream(spec.name, spec.schema))
    assert isinstance(source, MirrorSource)
    return source


def element_column(spec: TableSpec) -> str:
    """The column that says to which element a row belongs."""
    column = str((spec.source or {}).get("element_column", "element"))
    if column not in spec.schema.names or not pa.types.is_string(spec.schema.field(column).type):
        raise UserError(f"a table that is a mirror needs a column {column} of type string, for the element")
    return column
