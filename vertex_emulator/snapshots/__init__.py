"""Snapshots: what has ended in a data folder as one archive, and a data folder from an archive."""
