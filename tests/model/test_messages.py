"""Passwords in addresses, settings and errors: never told."""

from __future__ import annotations

import random
import string

import pytest

from freshet.model.messages import masked, masked_value

COUNT = 300
ANY = string.ascii_letters + string.digits + "@:/?#[]!$&()*+,;=%~^{}|<>-._"
WORDS = [
    "password",
    "sslpassword",
    "PGPASSWORD",
    "token",
    "access_token",
    "client_secret",
    "api_key",
    "secret.key",
    "pwd",
]


def password(random_: random.Random, characters: str = ANY) -> str:
    return "Zq" + "".join(random_.choices(characters, k=random_.randint(6, 20))) + "Zq"


def inner(text: str) -> list[str]:
    """Parts of a password that would give it away."""
    return [text[place : place + 6] for place in range(len(text) - 5)]


def address(random_: random.Random, secret: str) -> str:
    scheme = random_.choice(["postgresql", "postgres", "jdbc:mysql", "amqp", "s3a", "mongodb+srv", "redis"])
    user = random_.choice(["", "me", "first.last", "me%40there"])
    return f"{scheme}://{user}:{secret}@host{random_.choice(['', ':5432', ',other:1'])}{random_.choice(['', '/shop'])}"


def parameter(random_: random.Random, secret: str) -> str:
    word = random_.choice(WORDS)
    return random_.choice([f"postgresql://h/db?sslmode=require&{word}={secret}&x=1", f"host=h {word}={secret} user=me"])


def check(count: int) -> None:
    random_ = random.Random(7)
    plain = ANY.translate(str.maketrans("", "", "&,;)"))
    for _ in range(count):
        secret = password(random_)
        texts = [address(random_, secret)]
        other = password(random_, plain)
        texts.append(parameter(random_, other))
        for text, hidden in zip(texts, (secret, other), strict=True):
            for told in (
                masked(f"cannot reach {text}: refused"),
                masked(f"[{text!r}]"),
                str(masked_value("url", text)),
            ):
                assert not [part for part in inner(hidden) if part in told], (text, told)
        assert secret not in str(masked_value("options", {"a": [{random_.choice(WORDS): secret}]}))


def test_no_password_is_told() -> None:
    check(COUNT)


@pytest.mark.long
def test_no_password_is_told_in_many_texts() -> None:
    check(100_000)


@pytest.mark.parametrize(
    "text",
    [
        "spark://host:7077,other:7077",
        "postgresql://me@host:5432/shop?sslmode=require",
        "query q, line 1: password = 'x' AND token IN (1, 2)",
        "file /a/b:c@d/e.jsonl cannot be written",
        "weight=0.5, tokens 7",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked(text) == text


def test_an_address_with_a_space_or_a_quote_in_its_password() -> None:
    assert masked_value("url", "postgresql://me:it's my@own@host/db") == "postgresql://me:***@host/db"


def test_values_of_other_types_stay() -> None:
    assert masked_value("x", {"rows": 5, "on": True, "token": None, "keys": ["a"]}) == {
        "rows": 5, "on": True, "token": None, "keys": ["a"],
    }  # fmt: skip
