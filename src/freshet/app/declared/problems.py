"""What is wrong with an application: every problem with its place, a line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches

from freshet.model import UserError
from freshet.model.messages import masked


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong, and where: ``queries.hot.weight``; the empty place is the application itself."""

    place: str
    text: str

    def line(self, origin: str = "") -> str:
        r"""For people; further lines of the text are indented below the first.

        >>> Problem("queries.hot.sql", "no such column\nSELECT x").line("app.toml")
        'app.toml: queries.hot.sql: no such column\n    SELECT x'
        """
        first, *details = masked(self.text).splitlines() or [""]
        head = ": ".join(part for part in (origin, self.place, first) if part)
        return "\n".join([head, *(f"    {detail}" for detail in details)])


class InvalidApp(UserError):
    """The application cannot run as it is declared; its text lists every problem, a line each. The origin is the file
    that declares it, as the user named it."""

    def __init__(self, problems: Iterable[Problem], origin: str = "") -> None:
        self.problems = tuple(problems)
        self.origin = origin
        super().__init__("\n".join(problem.line(origin) for problem in self.problems))


def refuse(problems: Iterable[Problem], origin: str = "") -> None:
    """Raises the problems, if there are any."""
    if found := tuple(problems):
        raise InvalidApp(found, origin)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint if a known word is close, also if only its capitals differ, else nothing.

    >>> did_you_mean("wieght", ["weight", "sql"]), did_you_mean("SQL", ["weight", "sql"])
    (" (did you mean 'weight'?)", " (did you mean 'sql'?)")
    """
    folded = {each.casefold(): each for each in known}
    close = get_close_matches(word.casefold(), folded, n=1)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""


@contextmanager
def noted(problems: list[Problem], place: str, prefix: str = "") -> Iterator[None]:
    """Makes an error a problem; a prefix of its text that repeats the place is left out."""
    try:
        yield
    except UserError as error:
        problems.append(Problem(place, str(error).removeprefix(prefix)))
