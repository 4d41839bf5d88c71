"""What the site needs beside the pages: the README and the list of examples are pages of it, too.

The pages are written to be read in the repository, where links may lead to sources. The site has no sources: there such
a link is plain text.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
OUTSIDE: Final = {"index.md": "README.md", "examples.md": "examples/README.md"}
"""Pages of the site that lie outside of its folder."""
LINK: Final = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def moved(text: str, source: str, page: str) -> str:
    """The text of a file of the repository as a page of the site, its links led to where things are there.

    >>> moved("[a](docs/many.md#x) and [b](src/freshet) and [c](examples/README.md)", "README.md", "index.md")
    '[a](many.md#x) and b and [c](examples.md)'
    """

    def link(found: re.Match[str]) -> str:
        image, words, target, anchor = found.groups()
        if re.match(r"[a-z]+:", target):
            return found[0]
        place = _place(PurePosixPath(source).parent / target)
        pages = {file: name for name, file in OUTSIDE.items()}
        if place in pages:
            place = f"docs/{pages[place]}"
        if not place.startswith("docs/"):
            return words
        up = "../" * (len(PurePosixPath(page).parts) - 1)
        return f"{image}[{words}]({up}{place.removeprefix('docs/')}{anchor or ''})"

    return LINK.sub(link, text)


def _place(path: PurePosixPath) -> str:
    """A path without ``..``."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def on_files(files: Any, *, config: Any) -> Any:
    """Adds the pages that lie outside."""
    from mkdocs.structure.files import File

    for page, source in OUTSIDE.items():
        files.append(File.generated(config, page, content=moved((ROOT / source).read_text(), source, page)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Leaves out links to sources."""
    path = page.file.src_uri
    return markdown if path in OUTSIDE else moved(markdown, f"docs/{path}", path)
