"""What the commands of this folder have in common: options, and how they end."""

import argparse
from collections.abc import Sequence


def kills_parser(module: str, doc: str, kills: int) -> argparse.ArgumentParser:
    """Return the options of a command that kills something so many times by default."""
    parser = argparse.ArgumentParser(f"python -m {module}", description=doc.splitlines()[0])
    parser.add_argument("--kills", type=int, default=kills)
    parser.add_argument("--seed", type=int, default=1)
    return parser


def verdict(wrong: Sequence[str], right: str) -> int:
    """Print what is `wrong`, or that all is `right`, and return the exit code."""
    for line in wrong:
        print(f"WRONG {line}")
    print("something is wrong" if wrong else right)
    return 1 if wrong else 0
