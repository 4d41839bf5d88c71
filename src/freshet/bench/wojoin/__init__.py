"""``freshet bench wojoin``: joins without windows over real logs, against joins that are set in hindsight."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.stage import Stage

LEFTS: Final = ("weird", "analyzer")


@bench("Memory and accuracy of joins by ordered keys over Zeek logs.", takes="about a minute")
def wojoin(
    stage: Stage,
    in_order: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Share that must count as in order.")] = 0.99,
    batch: Annotated[int, typer.Option(min=1, help="Rows that come at once.")] = 200,
    rows: Annotated[int, typer.Option(min=2000, help="Rows of each log.")] = 1_000_000,
) -> Result:
    """`weird` and `analyzer` are joined with `ssl` on time and connection, in this process. A row comes when the newest
    time of its log so far is there. The rows that the join remembers, and the pairs that it finds, are compared with
    joins whose one setting is chosen in hindsight so that they find as many pairs: the last rows of each stream
    (`wjoin`), the rows of the last seconds (`ttl`), and a watermark with a delay as Structured Streaming has it (`ss`).
    Theirs are counted row by row; ours after each batch, as the engine holds them. A ratio below 1 says that ours
    remembers less. `pairs_wrong` compares the answer with the join of all rows above the mark.
    """
    from freshet.bench.wojoin.hindsight import hindsight
    from freshet.bench.wojoin.ours import play
    from freshet.bench.wojoin.zeek import Merged, zeek_logs

    logs = zeek_logs((*LEFTS, "ssl"), rows)
    figures: dict[str, float] = {}
    wrong = 0
    for name in LEFTS:
        merged = Merged(logs[name], logs["ssl"])
        stage.say(f"{name} with ssl: {len(merged.pairs)} pairs")
        found = play(merged, in_order, batch)
        accuracy = found.pairs / len(merged.pairs)
        others = hindsight(merged, accuracy)
        wrong += found.wrong
        figures |= {f"pairs_{name}": len(merged.pairs), f"accuracy_{name}": accuracy, f"past_{name}": found.past}
        figures |= {f"rows_held_{name}": found.held, f"rows_predicted_{name}": found.predicted}
        for other, held in others.items():
            figures[f"rows_{other}_{name}"] = held
            figures[f"{'rows' if other == 'ss' else 'memory'}_vs_{other}_{name}"] = found.held / held
    for ratio in ("memory_vs_wjoin", "memory_vs_ttl", "rows_vs_ss"):
        figures[ratio] = max(figures[f"{ratio}_{name}"] for name in LEFTS)
    figures |= {"accuracy": min(figures[f"accuracy_{name}"] for name in LEFTS), "pairs_wrong": wrong}
    return Result.of(figures, {"in_order": in_order, "batch": batch, "rows": {k: len(v.keys) for k, v in logs.items()}})
