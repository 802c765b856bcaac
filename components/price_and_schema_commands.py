"""The commands `vertex-training prices` and `vertex-training schema`."""

import sys
from pathlib import Path
from typing import Any

from vertex_api.estimates import prices

SCHEMAS = Path(__file__).parent / "schema"
_UNITS = {"vcpu": "vCPU hour", "gb": "GiB hour", "accelerator": "hour", "disk": "GiB month"}
EXIT_CODES = "exit codes: 0 done; 1 failed, with the reason on standard error; 2 wrong usage"


def add_parsers(commands: Any) -> None:
    """Add the commands to the parsers of `vertex-training`."""
    command = commands.add_parser(
        "prices",
        help="show the list prices that previews estimate costs with",
        description="Show the list prices that previews estimate costs with, each with its date and its source.",
        epilog=EXIT_CODES,
    )
    command.add_argument("--kind", choices=prices.KINDS, help="only prices of this kind")
    command.add_argument("--name", help="only this machine family, accelerator or disk, such as N1 or NVIDIA_TESLA_T4")
    command.add_argument("--region", help="only this region, such as us-central1")
    command.set_defaults(run=lambda args: print_prices_and_return_exit_code(args.kind, args.name, args.region))

    command = commands.add_parser(
        "schema",
        help="print or write the JSON Schemas for editors",
        description="Print a JSON Schema with which an editor checks and completes YAML, or write both into a folder.",
        epilog=EXIT_CODES,
    )
    group = command.add_mutually_exclusive_group(required=True)
    group.add_argument("schema", nargs="?", choices=("declarations", "stack"), help="print the schema of these files")
    group.add_argument("--write", type=Path, metavar="DIR", help="write both schemas into this folder")
    command.set_defaults(run=lambda args: print_or_write_schemas_and_return_exit_code(args.schema, args.write))


def print_prices_and_return_exit_code(price_kind: str | None, price_name: str | None, region: str | None) -> int:
    """Print the list prices that match all given arguments, and return the exit code: 1 if none does."""
    matches = [
        (key, price)
        for key, price in sorted(prices.bundled_prices().table.items())
        if all(selected in (None, value) for selected, value in zip((price_kind, price_name, region), key, strict=True))
    ]
    if not matches:
        sys.stderr.write("vertex-training: no list price matches; `vertex-training prices` shows all\n")
        return 1
    for (kind, name, price_region), price in matches:
        amount = f"{price.usd:<12g}{f'USD per {_UNITS[kind]}':<20}"
        print(f"{kind:<12}{name:<22}{price_region:<24}{amount}{price.as_of}")  # noqa: T201
    for source in sorted({price.source for _, price in matches}):
        days = sorted({price.as_of for _, price in matches if price.source == source})
        print(f"source for {', '.join(days)}: {source}")  # noqa: T201
    return 0


def print_or_write_schemas_and_return_exit_code(schema_name: str | None, folder: Path | None) -> int:
    """Print a JSON Schema, or write all of them into `folder`, and return the exit code 0."""
    if folder is None:
        sys.stdout.write((SCHEMAS / f"{schema_name}.schema.json").read_text(encoding="utf-8"))
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    for file in sorted(SCHEMAS.glob("*.schema.json")):
        (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
        print(folder / file.name)  # noqa: T201
    return 0
