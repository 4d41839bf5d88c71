"""What an instance has kept whose time was over before it had read all that it was to keep (RT §4.4)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from freshet.engine.states import WaitingInstance
from freshet.model import InstanceRun, UnitResult
from freshet.model.promises.quality_table import QualityTable


def as_read(
    instance: WaitingInstance, result: UnitResult, operators: Collection[int], table: QualityTable
) -> InstanceRun | None:
    """How an instance has run: with the shares that it kept, and the quality that its answer has by them.

    Args:
        instance: The instance.
        result: Of its unit.
        operators: Those of its query.
        table: The quality table of its query.
    """
    done = [each for each in result.chains if each.chain.nodes[0] in operators and each.share < 1.0]
    if not done or instance.run is None:
        return instance.run
    keeps = [train.keep.read(each.share) for each in done for train in each.chain.trains if train.keep is not None]
    kept = {keep.edge: keep.ratio for keep in keeps}
    worths = [table.of(each.stream).worth(each.window_kept(kept.get(each.reader, 1.0))) for each in instance.inputs]
    return replace(instance.run, kept=tuple(kept.items()), quality=min(worths, default=1.0))
