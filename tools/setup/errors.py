"""What can go wrong in a set-up."""


class SetupError(Exception):
    """A step cannot be done; the message says why and what the user can do about it."""
