"""Side-by-side measurements: `make bench`, or `python -m benchmarks SECTION …` for some of them."""

import argparse

from benchmarks import context, emulator, listing, local_run, preview, scale, tuning

_MODULES = (context, preview, scale, emulator, listing, local_run, tuning)
_SECTIONS = {module.__name__.rpartition(".")[2]: module for module in _MODULES}

parser = argparse.ArgumentParser("python -m benchmarks", description="Measure against other tools, side by side.")
parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"all, or some of {', '.join(_SECTIONS)}")
sections = parser.parse_args().sections
if unknown := [name for name in sections if name not in _SECTIONS]:
    parser.error(f'"{unknown[0]}" is not one of {", ".join(_SECTIONS)}')
for name in sections or _SECTIONS:
    for row in _SECTIONS[name].run_benchmark():
        print(row, flush=True)
    print()
