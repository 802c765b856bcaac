"""Side-by-side measurements: `make bench`."""

from benchmarks import emulator, listing, preview, tuning

for measure in (preview, emulator, listing, tuning):
    for row in measure.rows():
        print(row, flush=True)
    print()
