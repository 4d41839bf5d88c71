"""The stories that ``freshet demo`` tells: one file each, with a card called ``CARD``, and found automatically.

A story runs an application for about a minute, shows it, and ends with a picture and a few words. To add one, add a
file here. What else it needs (an application file, figures, words) is up to the story.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from freshet.model import UserError

Watch = Callable[[Mapping[str, Any], float], None]
"""Gets the report of a run, and the seconds since the story began."""


class StoryTeller(Protocol):
    """Where a story is told: a terminal, or a file."""

    def say(self, text: str) -> None:
        """Shows a line."""
        ...

    def check(self) -> None:
        """Raises if somebody wants the story to end; call it now and then."""
        ...

    def screen(self, phase: Callable[[float], str], urgent: str) -> AbstractContextManager[Watch]:
        """Shows a run while it lasts.

        Args:
            phase: Says what happens at a time of the story.
            urgent: The phase that stands out.
        """
        ...


class Told(Protocol):
    """A story that is over."""

    def save(self, path: Path) -> None:
        """Draws its picture into a PNG file."""
        ...

    def paragraphs(self) -> list[str]:
        """What was seen, in words, with the figures of the run."""
        ...

    def to_json(self) -> dict[str, Any]:
        """The figures of the picture."""
        ...


@dataclass(frozen=True, slots=True)
class Wishes:
    """How somebody wants a story.

    Args:
        seconds: How long it lasts; None: the story's own length.
        quick: Whether to tell a short one.
        policy: A policy instead of that of its application.
    """

    seconds: float | None = None
    quick: bool = False
    policy: str | None = None


@dataclass(frozen=True, slots=True)
class StoryCard:
    """What a file of this package says about its story.

    Args:
        name: ``freshet demo NAME`` tells it.
        summary: One line for ``freshet demo --list``.
        text: Returns the application file, for ``--show``.
        tell: Tells the story on a stage, with its state in a folder.
    """

    name: str
    summary: str
    text: Callable[[], str]
    tell: Callable[[Path, Wishes, StoryTeller], Told]


def cards() -> dict[str, StoryCard]:
    """All stories by name.

    >>> "flood" in cards()
    True
    """
    found = [import_module(f"{__name__}.{module.name}").CARD for module in pkgutil.iter_modules(__path__)]
    return {card.name: card for card in sorted(found, key=lambda card: card.name)}


def find_card(name: str) -> StoryCard:
    """The story with a name.

    >>> find_card("floot")
    Traceback (most recent call last):
    freshet.model.errors.UserError: there is no story 'floot': freshet demo --list shows them (flood, ...)
    """
    known = cards()
    if name not in known:
        raise UserError(f"there is no story {name!r}: freshet demo --list shows them ({', '.join(known)})")
    return known[name]
