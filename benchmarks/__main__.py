"""Side-by-side measurements: `make bench`."""

from benchmarks import emulator, listing, local_run, preview

for measure in (preview, emulator, listing, local_run):
    for row in measure.rows():
        print(row, flush=True)
    print()
