"""Side-by-side measurements: `make bench`."""

from benchmarks import context, emulator, listing, local_run, preview, scale, tuning

for measure in (context, preview, scale, emulator, listing, local_run, tuning):
    for row in measure.rows():
        print(row, flush=True)
    print()
