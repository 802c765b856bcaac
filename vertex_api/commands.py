"""The parser of a command line, which knows what a misspelt option or command may have been meant to be."""

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

_UNKNOWN = "unrecognized arguments: "
_CHOICE = re.compile(r"invalid choice: '(?P<given>[^']*)' \(choose from (?P<known>.*)\)")


class Parser(argparse.ArgumentParser):
    """A parser that refuses what it does not know with the most similar name that it does; so do its commands."""

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Parse arguments as the parser above does, but refuse unknown ones here, where the options are known."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"{_UNKNOWN}{' '.join(unknown)}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        """Print how the command is used and what is wrong, and exit with 2."""
        if match := _CHOICE.search(message):
            given, known = match["given"], re.findall(r"[\w.-]+", match["known"])
        else:
            given = message.removeprefix(_UNKNOWN).split()[0].partition("=")[0]
            known = [*self._option_string_actions] if given.startswith("--") else []
        # Imported here, because few command lines are wrong.
        from vertex_api.names import closest_name

        if nearest := closest_name(given, known):
            message += f"; did you mean {nearest}?"
        elif message.startswith(_UNKNOWN):
            message += f"; see: {self.prog} --help"
        super().error(message)
