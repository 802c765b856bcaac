"""Side-by-side measurements: `make bench`."""

from benchmarks import emulator, local_run, preview

for measure in (preview, emulator, local_run):
    for row in measure.rows():
        print(row, flush=True)
    print()
