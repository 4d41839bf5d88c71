"""``freshet policies``."""

from __future__ import annotations

import inspect
from typing import Final

EXAMPLES: Final = """\b
Example:
  freshet run app.toml --policy "rr(1000)"
"""


def policies() -> None:
    """List the scheduling policies.

    They go into the file ([app] policy) or the command line. A policy may take arguments: "rr(1000)" takes at most
    1,000 tuples of a queue in turn.
    """
    from freshet.policies import create, names

    wide = max(map(len, names()))
    for name in names():
        summary = (inspect.getdoc(create(name)) or "").splitlines()[0]
        print(f"{name:<{wide}}  {summary}")
