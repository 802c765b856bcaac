"""Side-by-side measurements: `make bench`."""

from benchmarks import emulator, listing, preview

for measure in (preview, emulator, listing):
    for row in measure.rows():
        print(row, flush=True)
    print()
