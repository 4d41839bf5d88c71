"""Errors that a person is meant to read."""


class FreshetError(Exception):
    """Base of every error that Freshet raises on purpose; its text is one clear statement."""


class UserError(FreshetError):
    """The input is wrong (a key, a unit, a schema, a query, a file): the CLI prints one line and exits with 2."""
