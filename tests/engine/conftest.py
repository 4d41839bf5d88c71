"""Fixtures for tests of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.engine.kit import Application


@pytest.fixture
def start() -> Iterator[Any]:
    with ExitStack() as stack:
        yield lambda *given, **options: stack.enter_context(Application(*given, **options))
