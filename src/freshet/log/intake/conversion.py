"""Converts values as they come to the types of a stream.

Numbers and texts are read as each other if nothing is lost (``"5"`` as 5, 5 as ``"5"``, 5.0 as 5; not 5.5
as 5), also within arrays, maps and structs. A timestamp may come as ISO 8601 text, as a number (seconds since the
epoch, as in Spark's cast), or as a timestamp of any unit. A timestamp without a zone is in the stream's time zone (see
:mod:`freshet.log.intake.zones`). A ``timestamp_ntz`` column holds the wall clock of that zone. Digits beyond
microseconds are cut off. Values of NumPy and pandas are converted, too; missing values there (``NaT``, ``NA``) are
NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshet.log.intake.casts import cast, castable
from freshet.log.intake.plain import PLAIN, plain
from freshet.log.intake.scalars import from_type
from freshet.log.intake.shown import shown
from freshet.model.schema import type_text

Converted: TypeAlias = tuple[pa.Array, set[int]]
"""A column in its type, and the places of values that do not fit; there the column is NULL."""
Nested: TypeAlias = Callable[[Sequence[Any], set[type], pa.DataType, str], Converted]

_NONE: Final = type(None)


def convert(values: pa.Array | Sequence[Any], field: pa.Field, zone: str) -> tuple[pa.Array, dict[int, str]]:
    """The values of a column in its type, and why some of them do not fit (they become NULL).

    Values that fit are converted at once; the column is taken apart only around a value that does not fit. No value can
    end the conversion or the process, whatever it is or does.

    >>> array, reasons = convert(["1", "x", 3], pa.field("v", pa.int64()), "UTC")
    >>> array.to_pylist(), reasons
    ([1, None, 3], {1: "column v: 'x' is not of type bigint"})
    """
    values = values.storage if isinstance(values, pa.ExtensionArray) else values
    if isinstance(values, pa.Array) and castable(values.type):
        array, wrong = _parts(values, lambda part: cast(part, field.type, zone), field.type)
    else:
        array, wrong = _column(list(values) if isinstance(values, pa.Array) else values, field.type, zone)
    return array, {place: _reason(values[place], field) for place in sorted(wrong)}


def _reason(value: Any, field: pa.Field) -> str:
    return f"column {field.name}: {shown(value)} is not of type {type_text(field.type)}"


def _column(values: Sequence[Any], kind: pa.DataType, zone: str) -> Converted:
    """A column of Python values. Arrow gets each type among them as a column of its own."""
    types, wrong = set(map(type, values)), set[int]()
    if not types <= PLAIN:
        values, wrong = _plain_values(values)
        types = set(map(type, values))
    array, misfits = _nested(kind)(values, types - {_NONE}, kind, zone)
    return array, wrong | misfits


def _plain_values(values: Sequence[Any]) -> tuple[Sequence[Any], set[int]]:
    found, wrong = list(values), set()
    for place, value in enumerate(values):
        try:
            found[place] = plain(value)
        except Exception:
            found[place] = None
            wrong.add(place)
    return found, wrong


def _nested(kind: pa.DataType) -> Nested:
    if pa.types.is_list(kind):
        return _lists
    if pa.types.is_map(kind):
        return _maps
    return _structs if pa.types.is_struct(kind) else _scalars


def _scalars(values: Sequence[Any], types: set[type], kind: pa.DataType, zone: str) -> Converted:
    if len(types) <= 1:
        python = next(iter(types), _NONE)
        return _parts(values, lambda part: from_type(part, python, kind, zone), kind)
    # Place 0 of all of them is NULL.
    parts, places, wrong = [pa.nulls(1, kind)], np.zeros(len(values), np.int64), set()
    for python in types:
        mine = [place for place, value in enumerate(values) if type(value) is python]
        array, misfits = _scalars([values[place] for place in mine], {python}, kind, zone)
        places[mine] = np.arange(len(mine)) + sum(map(len, parts))
        parts.append(array)
        wrong |= {mine[place] for place in misfits}
    return pa.concat_arrays(parts).take(pa.array(places)), wrong


def _parts(values: Any, step: Callable[[Any], pa.Array], kind: pa.DataType) -> Converted:
    """Converts all values at once; if that fails, each half on its own."""
    wrong: set[int] = set()

    def part(start: int, some: Any) -> list[pa.Array]:
        try:
            return [step(some)]
        except MemoryError:
            raise
        except Exception:
            if len(some) == 1:
                if not _is_null(some[0]):
                    wrong.add(start)
                return [pa.nulls(1, kind)]
        half = len(some) // 2
        return [*part(start, some[:half]), *part(start + half, some[half:])]

    arrays = part(0, values)
    return pa.concat_arrays(arrays) if len(arrays) > 1 else arrays[0], wrong


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, pa.Scalar) and not value.is_valid)


def _lists(values: Sequence[Any], types: set[type], kind: pa.DataType, zone: str) -> Converted:
    values, wrong = _only(values, types, {list, tuple})
    offsets = _offsets(values)
    items, misfits = _column(list(chain.from_iterable(filter(None, values))), kind.value_type, zone)
    if misfits:
        return _again(_lists, values, wrong | _owners(offsets, misfits), kind, zone)
    return pa.ListArray.from_arrays(pa.array(offsets), items, kind, mask=_mask(values)), wrong


def _maps(values: Sequence[Any], types: set[type], kind: pa.DataType, zone: str) -> Converted:
    if not types <= {dict}:
        values = [list(value.items()) if type(value) is dict else value for value in values]
        return _pairs(values, set(map(type, values)), kind, zone)
    offsets, known = _offsets(values), [value for value in values if value]
    keys = list(chain.from_iterable(known))
    return _map_column(_maps, values, offsets, keys, list(chain.from_iterable(map(dict.values, known))), kind, zone)


def _pairs(values: Sequence[Any], types: set[type], kind: pa.DataType, zone: str) -> Converted:
    """Maps as lists of pairs."""
    values, wrong = _only(values, types, {list, tuple})
    wrong |= {place for place, value in enumerate(values) if value and not all(map(_is_pair, value))}
    values = _without(values, wrong)
    offsets, pairs = _offsets(values), list(chain.from_iterable(filter(None, values)))
    keys, items = [key for key, _ in pairs], [item for _, item in pairs]
    array, misfits = _map_column(_pairs, values, offsets, keys, items, kind, zone)
    return array, wrong | misfits


def _map_column(
    step: Nested,
    values: Sequence[Any],
    offsets: npt.NDArray[np.int32],
    keys: list[Any],
    items: list[Any],
    kind: pa.DataType,
    zone: str,
) -> Converted:
    key_column, misfits = _column(keys, kind.key_type, zone)
    item_column, more = _column(items, kind.item_type, zone)
    misfits |= more
    if key_column.null_count:
        misfits |= set(np.flatnonzero(key_column.is_null().to_numpy(zero_copy_only=False)).tolist())
    if misfits:
        return _again(step, values, _owners(offsets, misfits), kind, zone)
    return pa.MapArray.from_arrays(pa.array(offsets), key_column, item_column, kind, mask=_mask(values)), set()


def _is_pair(value: Any) -> bool:
    return type(value) in (list, tuple) and len(value) == 2


def _structs(values: Sequence[Any], types: set[type], kind: pa.DataType, zone: str) -> Converted:
    values, wrong = _only(values, types, {dict})
    parts, unreadable = [], set[int]()
    for field in kind:
        column, failed = members(values, field.name)
        array, misfits = _column(column, field.type, zone)
        parts.append(array)
        unreadable |= misfits | failed
    if unreadable:
        return _again(_structs, values, wrong | unreadable, kind, zone)
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=_mask(values)), wrong


def members(rows: Sequence[dict[Any, Any] | None], name: str) -> tuple[list[Any], set[int]]:
    """What mappings hold under a name, and the places of those that cannot be read."""
    try:
        return [None if row is None else row.get(name) for row in rows], set()
    except Exception:
        pass
    found, failed = list[Any](), set[int]()
    for place, row in enumerate(rows):
        try:
            found.append(None if row is None else row.get(name))
        except Exception:
            found.append(None)
            failed.add(place)
    return found, failed


def _again(step: Nested, values: Sequence[Any], wrong: set[int], kind: pa.DataType, zone: str) -> Converted:
    """The column without the values that have a part that does not fit."""
    left = _without(values, wrong)
    array, more = step(left, set(map(type, left)) - {_NONE}, kind, zone)
    return array, wrong | more


def _only(values: Sequence[Any], types: set[type], wanted: set[type]) -> tuple[Sequence[Any], set[int]]:
    if types <= wanted:
        return values, set()
    wrong = {place for place, value in enumerate(values) if value is not None and type(value) not in wanted}
    return _without(values, wrong), wrong


def _without(values: Sequence[Any], wrong: set[int]) -> Sequence[Any]:
    return [None if place in wrong else value for place, value in enumerate(values)] if wrong else values


def _mask(values: Sequence[Any]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())


def _offsets(values: Sequence[Any]) -> npt.NDArray[np.int32]:
    lengths = np.fromiter((0 if value is None else len(value) for value in values), np.int64, len(values))
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def _owners(offsets: npt.NDArray[np.int32], misfits: set[int]) -> set[int]:
    """Which values the parts at these places belong to."""
    return set((np.searchsorted(offsets, sorted(misfits), side="right") - 1).tolist())
