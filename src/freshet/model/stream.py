"""Streams: what a user declares about data that keeps coming."""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

import pyarrow as pa

from freshet.model.errors import UserError
from freshet.model.key_order import KeyOrder


@dataclass(frozen=True, slots=True)
class Stream:
    """An endless sequence of tuples of one schema.

    Args:
        name: How queries call it.
        schema: Columns and types.
        event_time: Column that says when the event happened, if there is one.
        time_zone: Zone of event times that come without one (``timestamp`` columns given as text).
        validity: Seconds for which a tuple is worth answering, if that is limited (WU §4.3).
        lateness: Seconds by which an event time may lie behind the newest one seen; tuples that are later
            are counted and set aside. None: no tuple is ever late.
        order: By which column its tuples come in order, nearly; joins without windows go by it.

    >>> from freshet.model import parse_schema
    >>> Stream("packets", parse_schema("ts timestamp, size int"), event_time="ts").lateness is None
    True
    """

    name: str
    schema: pa.Schema
    event_time: str | None = None
    time_zone: str = "UTC"
    validity: float | None = None
    lateness: float | None = None
    order: KeyOrder | None = None

    @property
    def ordered_by(self) -> str | None:
        """The column by which its tuples come in order, nearly; None: there is none."""
        return None if self.order is None else self.order.column

    def __post_init__(self) -> None:
        try:
            ZoneInfo(self.time_zone)
        except (KeyError, ValueError, OSError):
            raise UserError(
                f"stream {self.name}: time_zone {self.time_zone!r} is not known: use for example 'UTC', 'Europe/Berlin'"
            ) from None
        if self.order is not None:
            try:
                self.order.check(self.schema)
            except UserError as error:
                raise UserError(f"stream {self.name}: {error}") from None
        if self.event_time is None:
            if self.lateness is not None:
                raise UserError(f"stream {self.name}: a lateness needs an event_time column")
            return
        if self.event_time not in self.schema.names:
            columns = ", ".join(self.schema.names)
            raise UserError(f"stream {self.name}: event_time {self.event_time!r} is not a column (columns: {columns})")
        if not pa.types.is_timestamp(self.schema.field(self.event_time).type):
            raise UserError(f"stream {self.name}: event_time {self.event_time} must be a timestamp")
