"""A picture at the bottom of a terminal that changes in place."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType


class Screen:
    """Shows one picture after the other in the same place; other output scrolls above it.

    The line below the picture stays free, so that a ^C that a person types there does not move the picture.

    A resized terminal breaks the lines of the last picture anew, each terminal in its own way. Then everything visible
    is erased, and the next picture begins at the top.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console()
        self._live = Live(console=self._console, auto_refresh=False)
        self._size = self._console.size

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    @property
    def height(self) -> int:
        """Maximum number of lines of a picture."""
        return self._console.height - 1

    def show(self, picture: RenderableType) -> None:
        """Replaces the last picture by this one."""
        size = self._console.size
        if size != self._size:
            self._size = size
            self._erase(size.height)
        self._live.update(Group(picture, ""), refresh=True)

    def _erase(self, height: int) -> None:
        # Line by line: some terminals keep a screen that is cleared as a whole in their history, with the old picture.
        line = ((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_DOWN, 1))
        self._console.control(Control(ControlType.HOME, *(line * height), ControlType.HOME))
