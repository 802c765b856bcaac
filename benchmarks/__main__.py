"""Side-by-side measurements: `make bench`."""

from benchmarks import context, emulator, listing, local_run, preview, tuning

for measure in (context, preview, emulator, listing, local_run, tuning):
    for row in measure.rows():
        print(row, flush=True)
    print()
