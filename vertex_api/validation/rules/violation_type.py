"""The type of a violation of a rule: the path of the field, and a message."""

KeyPath = tuple[str | int, ...]
Violation = tuple[KeyPath, str]
