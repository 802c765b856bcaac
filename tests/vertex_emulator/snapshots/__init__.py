"""Tests of the room `vertex_emulator/snapshots`."""
