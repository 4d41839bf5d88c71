"""``freshet bench wojoin``: joins without windows over real logs, against joins that are set in hindsight; steps of a
join that remembers much; and kills."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from freshet.bench.figures import Spread
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.stage import Stage

LEFTS: Final = ("weird", "analyzer")


@bench("Memory, accuracy, steps and kills of joins by ordered keys.", takes="about fifteen minutes")
def wojoin(
    stage: Stage,
    in_order: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Share that must count as in order.")] = 0.99,
    batch: Annotated[int, typer.Option(min=1, help="Rows that come at once.")] = 200,
    rows: Annotated[int, typer.Option(min=2000, help="Rows of each log.")] = 1_000_000,
    state: Annotated[int, typer.Option(min=0, help="Rows remembered by the steps; 0: leave them out.")] = 4_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of steps.")] = 2,
    steps: Annotated[int, typer.Option(min=2, help="Measured steps of a round.")] = 10,
    kills: Annotated[int, typer.Option(min=0, help="How often to kill; 0: never.")] = 20,
    streaming: Annotated[bool, typer.Option(help="Ask Structured Streaming for bytes.")] = True,
) -> Result:
    """`weird` and `analyzer` are joined with `ssl` on time and connection, in this process. A row comes when the newest
    time of its log so far is there. The rows that the join remembers, and the pairs that it finds, are compared with
    joins whose one setting is chosen in hindsight so that they find as many pairs: the last rows of each stream
    (`wjoin`), the rows of the last seconds (`ttl`), and a watermark with a delay as Structured Streaming has it (`ss`),
    in micro-batches of as many rows as ours, each with the watermark of those before; `ss_by_row` is the same with a
    watermark that moves row by row. The first two are counted row by row; ours after each batch, as the engine holds
    them. A ratio below 1 says that ours remembers less. `pairs_wrong` compares the answer with the join of all rows
    above the mark. `bytes_vs_ss` are our bytes (with indexes, mean over some batches) over those of as many rows as
    `ss` remembers, at the bytes of a row in the state store of a streaming query over the same logs.

    `step_vs_rebuild`: steps of 1,000 rows over a join that remembers many, in a resident over those without residents.
    `rows_wrong`: an application with joins that rest, sort and let go is killed again and again, and every answer is
    compared with what the log says.
    """
    figures, notes = _zeek(stage, in_order, batch, rows, streaming)
    if state:
        from freshet.bench.wojoin.rebuild import measure_steps

        with stage.spark("wojoin", "local[2]") as session:
            found, told = measure_steps(stage, session, state, rounds, steps)
        figures, notes = {**figures, **found}, {**notes, **told}
    if kills:
        from freshet.bench.wojoin.kills import killed_joins

        checked = killed_joins(stage, kills)
        figures |= {"kills": kills, "rows_wrong": checked.wrong, "rows_checked": checked.rows}
        notes |= {"killed_let_go": checked.let_go, "killed_past": checked.past}
    return Result.of(figures, notes)


def _zeek(
    stage: Stage, in_order: float, batch: int, rows: int, streaming: bool
) -> tuple[dict[str, float | Spread], dict[str, Any]]:
    from freshet.bench.wojoin.hindsight import hindsight, watermark_delay
    from freshet.bench.wojoin.ours import play
    from freshet.bench.wojoin.state_bytes import streaming_bytes
    from freshet.bench.wojoin.zeek import Merged, zeek_logs

    logs = zeek_logs((*LEFTS, "ssl"), rows)
    figures: dict[str, float | Spread] = {}
    least: dict[str, list[float]] = {}
    notes: dict[str, Any] = {"in_order": in_order, "batch": batch, "rows": {k: len(v.keys) for k, v in logs.items()}}
    notes["course"] = {}
    for name in LEFTS:
        merged = Merged(logs[name], logs["ssl"])
        stage.say(f"{name} with ssl: {len(merged.pairs)} pairs")
        found = play(merged, in_order, batch)
        accuracy, notes["course"][name] = found.pairs / len(merged.pairs), found.course
        others = hindsight(merged, accuracy, batch)
        figures |= {f"pairs_{name}": len(merged.pairs), f"accuracy_{name}": accuracy, f"past_{name}": found.past}
        figures |= {f"rows_held_{name}": found.held, f"rows_predicted_{name}": found.predicted}
        figures |= {f"bytes_held_{name}": found.size}
        least.setdefault("pairs_wrong", []).append(found.wrong)
        for other, held in others.items():
            figures[f"rows_{other}_{name}"] = held
            ratio = f"{'rows' if other.startswith('ss') else 'memory'}_vs_{other}"
            figures[f"{ratio}_{name}"] = found.held / held
            least.setdefault(ratio, []).append(found.held / held)
        least.setdefault("accuracy", []).append(accuracy)
        if streaming:
            delay = watermark_delay(merged, accuracy, batch)
            with stage.spark("wojoin", "local[2]", {"spark.sql.shuffle.partitions": "1"}) as session:
                size, told = streaming_bytes(stage, session, merged, delay)
            figures[f"bytes_per_row_ss_{name}"] = size
            figures[f"bytes_vs_ss_{name}"] = found.size / (size * others["ss"])
            least.setdefault("bytes_vs_ss", []).append(found.size / (size * others["ss"]))
            notes[f"streaming_{name}"] = {"delay_s": delay, **told}
    worst = {name: min(each) if name == "accuracy" else max(each) for name, each in least.items()}
    worst["pairs_wrong"] = sum(least["pairs_wrong"])
    return {**figures, **worst}, notes
