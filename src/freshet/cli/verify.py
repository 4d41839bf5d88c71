"""``freshet verify``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from freshet.log.store.verify import Check

EXAMPLES: Final = """\b
Examples:
  freshet verify app.toml
  freshet verify state --json
"""


def verify(
    app: Annotated[Path, typer.Argument(metavar="APP", help="Application file, or state folder.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Look for damage in a state folder: the store, the checksums of all segments, cursors, unknown files.

    It reads every segment. It changes nothing, and you may use it while the application runs. The exit code is 1 if
    something is damaged.
    """
    from freshet.cli.reading.read import state_of
    from freshet.log.store.verify import document
    from freshet.log.store.verify import verify as look

    state = state_of(app)[0]
    checks = look(state)
    if as_json:
        print(json.dumps(document(state, checks), ensure_ascii=False))
    else:
        _print(state, checks)
    if any(check.damage for check in checks):
        raise typer.Exit(1)


def _print(state: Path, checks: list[Check]) -> None:
    wide = max(len(check.looked_at) for check in checks)
    for check in checks:
        verdict = f"{len(check.damage)} damaged" if check.damage else "well"
        print(f"{check.name:<9}  {check.looked_at:<{wide}}  {verdict}")
        for text in (*check.damage, *check.notes):
            print(f"  - {text}")
        if check.damage or (check.notes and check.name == "orphans"):
            print(f"    ({check.meaning})")
    damage = sum(len(check.damage) for check in checks)
    print(f"{state} is {'damaged' if damage else 'whole'}")
