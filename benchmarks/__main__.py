"""Side-by-side measurements: `make bench`."""

from benchmarks import emulator, preview, throughput, tuning

for measure in (preview, emulator, throughput, tuning):
    for row in measure.rows():
        print(row, flush=True)
    print()
