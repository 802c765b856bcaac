"""Side-by-side measurements: `make bench`."""

from benchmarks import emulator, preview

for measure in (preview, emulator):
    for row in measure.rows():
        print(row, flush=True)
    print()
