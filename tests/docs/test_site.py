"""The site: every page is in it, and it is built without a warning."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = runpy.run_path(str(ROOT / "docs/site.py"))


def test_links_lead_to_where_things_are_on_the_site() -> None:
    moved = SITE["moved"]
    assert moved("[a](docs/many.md#x), [b](src/freshet)", "README.md", "index.md") == "[a](many.md#x), b"
    assert moved("[a](../many.md)", "docs/tutorial/x.md", "tutorial/x.md") == "[a](../many.md)"
    assert moved("[a](../../examples/README.md)", "docs/tutorial/x.md", "tutorial/x.md") == "[a](../examples.md)"
    assert moved("![a](plots/many.png)", "docs/many.md", "many.md") == "![a](plots/many.png)"
    assert moved("[a](https://a.b/c.md) [b](#here)", "README.md", "index.md") == "[a](https://a.b/c.md) [b](#here)"


def test_the_list_of_pages_has_every_page_once() -> None:
    listed = re.findall(r"^ +- .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    written = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted([*SITE["OUTSIDE"], *written])


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    build(load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(tmp_path / "site")))
    start = (tmp_path / "site/index.html").read_text()
    assert "tutorial/streams.html" in start
    assert "docs/" not in re.findall(r'href="([^"]*)"', start)
