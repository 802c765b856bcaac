"""The command line: start, watch and stop the emulator, print logs, inject faults."""
