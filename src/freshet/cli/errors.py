"""How errors reach a person: one line, an exit code, never a traceback."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from pathlib import Path


def fail(error: Exception) -> int:
    """Says on standard error what went wrong; returns the exit code.

    2: the input is wrong. 1: something else went wrong. If Freshet did not expect it, the line names a file with the
    traceback.
    """
    from freshet.model import FreshetError, UserError
    from freshet.model.messages import masked

    if isinstance(error, BrokenPipeError):
        # The reader of our output has gone; the interpreter must not try to flush it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if isinstance(error, FreshetError):
        print(masked(str(error)), file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    place = write_traceback(error)
    text = next(iter(masked(str(error)).splitlines()), "")
    print(f"freshet: unexpected {type(error).__name__}: {text} (traceback in {place})", file=sys.stderr)
    return 1


def write_traceback(error: BaseException) -> Path:
    """Writes the traceback to a file of its own."""
    from freshet.model.messages import masked

    descriptor, name = tempfile.mkstemp(prefix="freshet-", suffix=".traceback")
    with os.fdopen(descriptor, "w") as file:
        file.write(masked("".join(traceback.format_exception(error))))
    return Path(name)
