"""The error of a set-up."""


class SetupError(Exception):
    """A step failed; the message says why and what the user can do about it."""
