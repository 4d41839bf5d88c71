"""How many residents there are, and which settings exclude them."""

from __future__ import annotations

import pytest

from freshet.spark.session.residency import wanted, why_none

SPECULATION = "spark.speculation.task.duration.threshold"
IDLE = "spark.python.worker.idleTimeoutSeconds"
KILL = "spark.python.worker.killOnIdleTimeout"
SQL_IDLE = "spark.sql.execution.pyspark.udf.idleTimeoutSeconds"
SQL_KILL = "spark.sql.execution.pyspark.udf.killOnIdleTimeout"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"spark.speculation": "TRUE", SPECULATION: "15ms"}, "a second time"),
        ({IDLE: "30", KILL: "true"}, f"{KILL} makes Spark kill"),
        ({SQL_IDLE: "30s", SQL_KILL: "true"}, f"{SQL_KILL} makes Spark kill"),
        # What is not said for SQL is taken from the settings of all workers.
        ({IDLE: "30", SQL_KILL: "true"}, f"{SQL_KILL} makes Spark kill"),
        ({SQL_IDLE: "30", KILL: "true"}, f"{KILL} makes Spark kill"),
        ({"spark.network.crypto.enabled": "true"}, "not encrypted"),
        ({"spark.ssl.rpc.enabled": "true"}, "not encrypted"),
        ({"spark.authenticate.enableSaslEncryption": "true"}, "not encrypted"),
    ],
)
def test_settings_that_would_kill_copy_or_show_residents_exclude_them(settings: dict[str, str], words: str) -> None:
    assert words in (why_none(settings) or "")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"spark.dynamicAllocation.enabled": "true"},
        {"spark.decommission.enabled": "true"},
        {"spark.speculation": "true"},
        {SPECULATION: "15ms"},
        {IDLE: "30", KILL: "false"},
        {IDLE: "0", KILL: "true"},
        {KILL: "true"},
        {IDLE: "0ms", KILL: "true"},
        {IDLE: "30", KILL: "true", SQL_KILL: "false"},
        {IDLE: "30", KILL: "true", SQL_IDLE: "0"},
    ],
)
def test_other_settings_do_not(settings: dict[str, str]) -> None:
    assert why_none(settings) is None


@pytest.mark.parametrize(("cores", "local", "cluster"), [(1, 1, 0), (2, 2, 1), (4, 3, 3), (64, 3, 3)])
def test_auto_leaves_a_core_of_a_cluster_to_jobs(cores: int, local: int, cluster: int) -> None:
    assert wanted("auto", 3, cores, local=True) == local
    assert wanted("auto", 3, cores, local=False) == cluster
