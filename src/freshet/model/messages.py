"""Errors and settings as they may be shown: in one line, without passwords."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from freshet.model.errors import FreshetError

HIDDEN: Final = "***"

# Up to the last @ before a space or a quote, whatever is there: a password may itself hold an @, a / or a :.
_USERINFO: Final = re.compile(r"([A-Za-z][\w+.-]*://[^\s:/@'\"]*):[^\s'\"]*@")
_ADDRESS: Final = re.compile(r"([A-Za-z][\w+.-]*://[^:/@]*):.*@", re.DOTALL)
_SECRET: Final = (
    r"[\w.-]*(?:passw(?:or)?d|pwd|passphrase|passfile|secret|token|credential|api[._-]?key|access[._-]?key"
    r"|account[._-]?key|private[._-]?key|signature|jaas[._-]?config)[\w.-]*"
)
_KEY: Final = re.compile(_SECRET, re.IGNORECASE)
_ASSIGNED: Final = re.compile(
    rf"(?<![\w.-])({_SECRET})(=)(?:\"[^\"]*\"|'(?:[^'\\]|\\.)*'|[^\s&;,'\")]+)", re.IGNORECASE
)


def masked(text: str) -> str:
    """A text without the passwords of addresses, and without what is assigned to a name that means a secret.

    >>> masked("cannot reach postgresql://me:p@ss/word@host:5432/shop?sslpassword=x&sslmode=require")
    'cannot reach postgresql://me:***@host:5432/shop?sslpassword=***&sslmode=require'
    >>> masked("invalid dsn: host=db password='my own' user=me")
    'invalid dsn: host=db password=*** user=me'
    >>> masked("spark://host:7077")
    'spark://host:7077'
    """
    if "://" in text:
        text = _USERINFO.sub(rf"\1:{HIDDEN}@", text)
    return _ASSIGNED.sub(rf"\1\2{HIDDEN}", text) if "=" in text else text


def masked_value(key: str, value: Any) -> Any:
    """The value of a setting as it may be shown.

    >>> masked_value("spark.hadoop.fs.s3a.secret.key", "abc"), masked_value("spark.executor.memory", "2g")
    ('***', '2g')
    >>> masked_value("options", {"password": "abc", "servers": ["a", "b"]})
    {'password': '***', 'servers': ['a', 'b']}
    """
    if isinstance(value, Mapping):
        return {name: masked_value(str(name), part) for name, part in value.items()}
    if _KEY.fullmatch(key) and value not in (None, True, False):
        return HIDDEN
    if isinstance(value, list | tuple):
        return [masked_value(key, part) for part in value]
    # An address alone is masked whatever is in it, a space or a quote, too.
    return masked(_ADDRESS.sub(rf"\1:{HIDDEN}@", value)) if isinstance(value, str) else value


def counted(number: int, thing: str) -> str:
    """A number of things in words.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def sentence(error: BaseException) -> str:
    """What an error says, with its kind if it is not one of ours.

    >>> sentence(FreshetError("the disk is full")), sentence(ValueError("no day")), sentence(KeyError())
    ('the disk is full', 'ValueError: no day', 'KeyError')
    """
    kind = type(error).__name__
    try:
        text = masked(str(error))
    except Exception:  # an error of a user's code, whose own text raises
        text = ""
    if not text:
        return kind
    return text if isinstance(error, FreshetError) else f"{kind}: {text}"
