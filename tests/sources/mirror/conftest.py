"""What the tests of mirrors share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.sources.mirror.web import Web, serving


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as made:
        yield made
