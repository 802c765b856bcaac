"""ClosedTypedDict: the base of all objects in declarations and stack files."""

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict


@with_config(ConfigDict(extra="forbid"))
class ClosedTypedDict(TypedDict):
    """An object with the fields that it declares and no others."""
