"""The table of measured claims, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Column, Table

PlainResult = Mapping[str, Any]
"""What :func:`freshet.reproduce.registry.run` returns."""


def table_of(results: Sequence[PlainResult]) -> Table:
    """One table for all papers: a row for each claim, below it a row for each other reading."""
    table = Table(Column("claim", overflow="fold", min_width=34), "published", "ours", "spread", "accepted", "holds")
    table.title = "\n".join(map(title_of, results))
    for result in results:
        for each in result["claims"]:
            table.add_row(each["id"], str(each["published"]), *figures(each), band(each), verdict(each))
            for text, value in each.get("readings", {}).items():
                table.add_row(f"    {text}", "", f"{value:.3g}", "", "", "")
        table.add_section()
    return table


def title_of(result: PlainResult) -> str:
    """What was measured, and how many claims hold.

    >>> title_of({"paper": "fas", "mode": "quick", "seeds": 3, "runs": 9, "held": 2, "failed": 1})
    'fas, quick mode, 3 seeds, 9 runs: 2 claims hold, 1 does not'
    """
    failed = result["failed"]
    fails = f"{failed} does not" if failed == 1 else f"{failed} do not"
    size = f"{_count(result['seeds'], 'seed')}, {_count(result['runs'], 'run')}"
    head = f"{result['paper']}, {result['mode']} mode, {size}"
    holds = "claim holds" if result["held"] == 1 else "claims hold"
    return f"{head}: {result['held']} {holds}, {fails}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def figures(claim: PlainResult) -> tuple[str, str]:
    """The measured value and its spread; no spread if all seeds gave the same.

    >>> figures({"ok": True, "ours": 0.2, "spread": [0.1, 0.3]})
    ('0.2', '0.1 to 0.3')
    >>> figures({"ok": True, "ours": 0.2, "spread": [0.2, 0.2]})
    ('0.2', '')
    """
    if claim["ok"] is None:
        return "", ""
    least, greatest = claim["spread"]
    return f"{claim['ours']:.3g}", f"{least:.3g} to {greatest:.3g}" if least < greatest else ""


def verdict(claim: PlainResult) -> str:
    """Whether it holds, with what a reader must know about that.

    >>> verdict({"ok": True, "kind": "check", "hangs_on_a_step": True})
    'yes (a check); hangs on one step of its grid'
    >>> verdict({"ok": True, "kind": "claim", "spread": [-0.01, 0.04], "low": 0.0001, "high": None})
    'yes, but not for every seed'
    >>> verdict({"ok": True, "kind": "claim", "spread": [0.02, 0.02], "low": 0.0, "high": None, "of_published": 0.12})
    'yes, with 0.12 of the published effect'
    """
    if claim["ok"] is None:
        return f"not measured: {claim['skipped']}"
    said = "yes" if claim["ok"] else "NO"
    if claim["kind"] == "check":
        said += " (a check)"
    elif claim["ok"] and not _in_every_seed(claim):
        said += ", but not for every seed"
    if "of_published" in claim:
        said += f", with {claim['of_published']:.2g} of the published effect"
    if claim.get("hangs_on_a_step"):
        said += "; hangs on one step of its grid"
    return f"{said}: {claim['reason']}" if "reason" in claim else said


def _in_every_seed(claim: PlainResult) -> bool:
    least, greatest = claim["spread"]
    return (claim["low"] is None or least >= claim["low"]) and (claim["high"] is None or greatest <= claim["high"])


def band(claim: PlainResult) -> str:
    """The accepted values.

    >>> band({"low": 0.5, "high": None}), band({"low": 0.0, "high": 1.0})
    ('at least 0.5', '0 to 1')
    """
    low, high = claim["low"], claim["high"]
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    return f"at least {low:g}" if low is not None else f"at most {high:g}"
