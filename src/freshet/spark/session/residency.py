"""How many residents an application gets, and why none. No PySpark here: ``freshet check`` and ``explain`` ask, too.

In local mode Spark is started with a slot more for each resident: residents and jobs share the cores, not the slots. On
a cluster a slot is a core of some machine, which counts as taken even while a resident waits. So one slot is always
left for jobs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, cast

from freshet.model import UserError

ResidentSetting = int | Literal["auto", "off"]
"""How many residents are wanted."""
MOST: Final = 64

_IDLE: Final = ("spark.sql.execution.pyspark.udf.idleTimeoutSeconds", "spark.python.worker.idleTimeoutSeconds")
"""Settings that say after how many seconds a Python worker that waits is noticed; the first one given counts."""
_KILL: Final = ("spark.sql.execution.pyspark.udf.killOnIdleTimeout", "spark.python.worker.killOnIdleTimeout")
"""Settings that say whether it is killed then, in the same way."""
_ENCRYPTION: Final = (
    "spark.network.crypto.enabled", "spark.ssl.rpc.enabled", "spark.authenticate.enableSaslEncryption",
)  # fmt: skip


def check_resident(value: object) -> ResidentSetting:
    """Refuses what is no number of residents.

    >>> check_resident("auto"), check_resident(2), check_resident(0)
    ('auto', 2, 'off')
    >>> check_resident("on")
    Traceback (most recent call last):
    freshet.model.errors.UserError: resident must be 'auto', 'off' or a whole number from 0 to 64, not 'on'
    """
    if value in ("auto", "off"):
        return cast(ResidentSetting, value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        raise UserError(f"resident must be 'auto', 'off' or a whole number from 0 to {MOST}, not {shown}")
    return value or "off"


def parse_resident(text: str) -> ResidentSetting:
    """The same from a text, as options give it.

    >>> parse_resident("off"), parse_resident("2")
    ('off', 2)
    """
    return check_resident(int(text) if text.isdecimal() else text)


def wanted(setting: ResidentSetting, workers: int, cores: int, local: bool) -> int:
    """How many residents a run wants: ``auto`` takes one for each unit that can run at once on a core of its own. On a
    cluster it leaves one core to jobs.

    >>> wanted("auto", workers=4, cores=2, local=True), wanted("auto", workers=4, cores=2, local=False)
    (2, 1)
    >>> wanted("off", workers=4, cores=2, local=True), wanted(3, workers=1, cores=2, local=True)
    (0, 3)
    """
    if setting == "off":
        return 0
    if setting == "auto":
        return min(workers, cores if local else cores - 1)
    return setting


def why_none(settings: Mapping[str, str], local: bool = False, setting: ResidentSetting = "auto") -> str | None:
    """Why there are no residents under some Spark settings, or as declared; None: there can be some.

    >>> why_none({}, setting="off")
    'resident is off'
    >>> why_none({"spark.network.crypto.enabled": "true"})
    'spark.network.crypto.enabled asks for encryption, and what residents and the driver exchange is not encrypted'
    >>> why_none({"spark.network.crypto.enabled": "true"}, local=True) is None
    True
    >>> why_none({"spark.speculation": "true"}) is None
    True
    """
    if setting == "off":
        return "resident is off"
    for key in () if local else _ENCRYPTION:
        if _is_on(settings, key):
            return f"{key} asks for encryption, and what residents and the driver exchange is not encrypted"
    threshold = "spark.speculation.task.duration.threshold"
    if _is_on(settings, "spark.speculation") and threshold in settings:
        return f"{threshold} makes Spark run every task that takes long a second time"
    seconds, kill = (next((key for key in keys if key in settings), None) for keys in (_IDLE, _KILL))
    if kill is not None and _is_on(settings, kill) and seconds is not None and re.search("[1-9]", settings[seconds]):
        return f"{kill} makes Spark kill Python workers that wait"
    return None


def why_no_start(settings: Mapping[str, str], local: bool, setting: ResidentSetting) -> str | None:
    """Why an application cannot start with a number of residents; None: it can, as far as these settings say.

    >>> why_no_start({}, True, 2), why_no_start({"spark.ssl.rpc.enabled": "true"}, False, "auto")
    (None, None)
    """
    none = why_none(settings, local, setting) if isinstance(setting, int) else None
    return None if none is None else no_start(none)


def no_start(none: str) -> str:
    """What is said if residents are declared and there can be none, from the reason for that."""
    return f"there can be no residents: {none}; leave out that setting, or set resident = 'off'"


def too_few(slots: int, others: int = 0) -> str:
    """Why the slots of a Spark do not suffice, where other runs hold some of them.

    >>> too_few(1), too_few(4, others=2)
    ('Spark has one slot, which is left to jobs', 'Spark has 4 slots: other runs hold 2, and one is left to jobs')
    """
    if slots == 1:
        return "Spark has one slot, which is left to jobs"
    held = f"other runs hold {others}, and " if others else ""
    return f"Spark has {slots} slots: {held}one is left to jobs"


def _is_on(settings: Mapping[str, str], key: str) -> bool:
    return settings.get(key, "false").strip().lower() == "true"
