"""Decision tables that ``freshet calibrate`` has measured: a file of the state folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from freshet.log.store.private import write_private
from freshet.model import MEASURES, UserError
from freshet.quality.optimizer import DecisionTable

_FILE: Final = "ranks.json"

StrategyFigures = Mapping[str, Mapping[str, float | None]]
"""By strategy, what each measure was."""


@dataclass(frozen=True, slots=True)
class MeasuredRanks:
    """What was measured of strategies.

    Args:
        time: When, ISO 8601.
        seconds: For how long with each strategy.
        figures: By query.

    >>> import tempfile
    >>> figures = {"q": {"pcs": dict.fromkeys(MEASURES, 0.5), "segment": dict.fromkeys(MEASURES, 2.0)}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     MeasuredRanks("2026-01-01T00:00:00", 20.0, figures).write(Path(folder))
    ...     MeasuredRanks.read(Path(folder)).tables()["q"].ranks["throughput"]
    {'pcs': 1.0, 'segment': 2.0}
    """

    time: str
    seconds: float
    figures: Mapping[str, StrategyFigures]

    def tables(self) -> dict[str, DecisionTable]:
        """The decision table of each query."""
        return {query: DecisionTable.of_figures(figures) for query, figures in self.figures.items()}

    def text(self) -> str:
        """Figures and ranks as JSON."""
        ranks = {query: table.ranks for query, table in self.tables().items()}
        return json.dumps(asdict(self) | {"ranks": ranks}, indent=2)

    def write(self, state: Path) -> None:
        """Keeps them; only the figures are read again."""
        write_private(state / _FILE, f"{self.text()}\n")

    @classmethod
    def read(cls, state: Path) -> MeasuredRanks:
        """What was measured.

        Raises:
            UserError: Nothing was, or the file is damaged.
        """
        path = state / _FILE
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            made = cls(told["time"], told["seconds"], told["figures"])
            missing = [query for query, table in made.tables().items() if table.ranks.keys() != MEASURES.keys()]
        except FileNotFoundError:
            raise UserError('ranks = "measured", but nothing was measured: run `freshet calibrate APP.toml`') from None
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            missing = [str(path)]
        if missing:
            raise UserError(f"{path} is damaged: run `freshet calibrate APP.toml` again")
        return made
