"""Side-by-side measurements: `make bench`."""

from benchmarks import emulator, preview, tuning

for measure in (preview, emulator, tuning):
    for row in measure.rows():
        print(row, flush=True)
    print()
