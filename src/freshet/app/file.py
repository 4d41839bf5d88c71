"""Reading the application file, with errors that say where and what would be right."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import ValidationError

from freshet.app.config import AppFile
from freshet.app.problems import InvalidApp, Problem
from freshet.app.validation import problems_of
from freshet.model import UserError


def read_file(path: Path) -> AppFile:
    """Reads and checks an application file.

    Raises:
        InvalidApp: With every problem that was found.
        UserError: Where the file cannot be read at all.
    """
    try:
        content = path.read_bytes().decode()
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"{path}: cannot be read: {reason}") from None
    return parse_file(content, str(path))


def parse_file(content: str, origin: str = "") -> AppFile:
    """Checks the content of an application file.

    >>> parse_file('''
    ... [streams.s]
    ... schema = "v int"
    ... [queries.q]
    ... sql = "SELECT v FROM s"
    ... wieght = 0.5
    ... ''', "app.toml")
    Traceback (most recent call last):
    freshet.app.problems.InvalidApp: app.toml: queries.q.wieght: unknown key (did you mean 'weight'?)
    """
    try:
        return AppFile.model_validate(tomllib.loads(content))
    except tomllib.TOMLDecodeError as error:
        raise InvalidApp([Problem("", f"is not TOML: {error}")], origin) from None
    except ValidationError as error:
        raise InvalidApp(problems_of(error, AppFile), origin) from None
