"""One page with the measured claims of papers and their plots, without anything around it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final

from freshet.reproduce.registry import PAPERS
from freshet.reproduce.table import PlainResult, band, figures, title_of, verdict

_HEAD: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Published claims, measured again</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem; border-bottom: 1px solid #ddd }
td.id { font-family: ui-monospace, monospace }
tr.no td { background: #fdecea }
tr.check td { color: #777 }
details { color: #555 }
img { max-width: 100%; height: auto }
</style>
</head>
<body>
<h1>Published claims, measured again</h1>
"""
_COLUMNS: Final = ("claim", "published", "ours", "spread", "accepted", "holds")


def page_of(results: Sequence[PlainResult], plots: Path) -> str:
    """The page; it holds the plots of ``plots`` that belong to these papers."""
    return _HEAD + "".join("".join(_section(result, plots)) for result in results) + "</body>\n</html>\n"


def _section(result: PlainResult, plots: Path) -> Iterator[str]:
    yield f"<h2>{escape(PAPERS[result['paper']])}</h2>\n<p>{escape(title_of(result))}</p>\n<table>\n<tr>"
    yield "".join(f"<th>{column}</th>" for column in _COLUMNS) + "</tr>\n"
    for each in result["claims"]:
        yield from _row(each)
    yield "</table>\n"
    for file in sorted(plots.glob(f"{result['paper']}_*.png")):
        data = b64encode(file.read_bytes()).decode()
        yield f'<p><img alt="{escape(file.stem)}" src="data:image/png;base64,{data}"></p>\n'


def _row(claim: PlainResult) -> Iterator[str]:
    kind = "no" if claim["ok"] is False else claim["kind"]
    cells = (str(claim["published"]), *figures(claim), band(claim), verdict(claim))
    yield f'<tr class="{kind}"><td class="id">{escape(claim["id"])}<br><small>{escape(claim["source"])}</small>'
    readings = claim.get("readings", {})
    if readings:
        lines = "".join(f"<br>{escape(text)}: {value:.3g}" for text, value in readings.items())
        yield f"<details><summary>{len(readings)} readings</summary>{lines}</details>"
    yield "</td>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>\n"
