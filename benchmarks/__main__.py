"""Side-by-side measurements: `make bench`, or `python -m benchmarks SECTION …` for some of them."""

import argparse

from benchmarks import context, database, gcloud, logs, overhead, pulumi, review, runs, search, transports

_SECTIONS = {
    "context": context.rows,
    "preview": pulumi.preview_rows,
    "review": review.rows,
    "runs": runs.rows,
    "calls": pulumi.call_rows,
    "up": pulumi.up_rows,
    "overhead": overhead.rows,
    "logs": logs.rows,
    "database": database.rows,
    "gcloud": gcloud.rows,
    "search": search.rows,
    "transports": transports.rows,
}

parser = argparse.ArgumentParser("python -m benchmarks", description="Measure against other tools, side by side.")
parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"all, or some of {', '.join(_SECTIONS)}")
sections = parser.parse_args().sections
if unknown := [name for name in sections if name not in _SECTIONS]:
    parser.error(f'"{unknown[0]}" is not one of {", ".join(_SECTIONS)}')
for name in sections or _SECTIONS:
    for line in _SECTIONS[name]():
        print(line, flush=True)
    print()
