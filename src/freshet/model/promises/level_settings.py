"""How the levels of periodic queries are managed (RT §4.3-4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from freshet.model.errors import UserError

LevelMode = Literal["predicted", "feedback", "off"]
"""Who says how much of its windows an instance reads, if its query may be thinned.

- ``predicted``: what is predicted of all instances, so that every one is in time.
- ``feedback``: the deadlines that were missed lately, to compare.
- ``off``: instances read everything.
"""
LevelAim = Literal["fair", "balanced", "average"]
"""What is made as good as possible: the worst answer, then the next one (RT Fig. 7), or the average (RT §4.4). Between
them lies ``balanced``: the losses of level count by their cube."""

WhenFull = Literal["degrade", "refuse"]
"""What happens to periodic queries that cannot all be in time: their levels fall, or they are refused."""


@dataclass(frozen=True, slots=True)
class LevelSettings:
    """How levels are managed.

    Args:
        mode: Who says the levels.
        aim: What they make as good as possible.
        ahead: Whether releases that come before the last deadline count (RT §7).
        admission: What happens to queries that cannot all be in time.

    >>> LevelSettings.checked("predicted", "mean")
    Traceback (most recent call last):
    freshet.model.errors.UserError: aim must be "fair" or "balanced" or "average", not 'mean'
    """

    mode: LevelMode = "predicted"
    aim: LevelAim = "fair"
    ahead: bool = False
    admission: WhenFull = "degrade"

    @classmethod
    def checked(
        cls, mode: str = "predicted", aim: str = "fair", ahead: bool = False, admission: str = "degrade"
    ) -> LevelSettings:
        """The settings that a user writes.

        Raises:
            UserError: There is no such mode, aim or admission.
        """
        for key, given, words in (
            ("levels", mode, get_args(LevelMode)),
            ("aim", aim, get_args(LevelAim)),
            ("admission", admission, get_args(WhenFull)),
        ):
            if given not in words:
                known = " or ".join(f'"{word}"' for word in words)
                raise UserError(f"{key} must be {known}, not {given!r}")
        return cls(mode, aim, bool(ahead), admission)  # type: ignore[arg-type]
