"""Side-by-side measurements: `make bench`, or `python -m benchmarks SECTION …` for some of them."""

import argparse

from benchmarks import (
    api_call_counts,
    context_digest_time,
    emulator_log_pages,
    emulator_overhead,
    emulator_with_large_database,
    gcloud_local_run,
    preview_review_of_thousand_jobs,
    preview_time,
    pulumi_with_thousand_jobs,
    search_quality,
)

_MODULES = (
    *(context_digest_time, preview_time, preview_review_of_thousand_jobs, api_call_counts, pulumi_with_thousand_jobs),
    *(emulator_overhead, emulator_log_pages, emulator_with_large_database, gcloud_local_run, search_quality),
)
_SECTIONS = {module.__name__.rpartition(".")[2]: module for module in _MODULES}

parser = argparse.ArgumentParser("python -m benchmarks", description="Measure against other tools, side by side.")
parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"all, or some of {', '.join(_SECTIONS)}")
sections = parser.parse_args().sections
if unknown := [name for name in sections if name not in _SECTIONS]:
    parser.error(f'"{unknown[0]}" is not one of {", ".join(_SECTIONS)}')
for name in sections or _SECTIONS:
    for row in _SECTIONS[name].yield_benchmark_rows():
        print(row, flush=True)
    print()
