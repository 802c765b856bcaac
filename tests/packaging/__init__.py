"""The distribution: what its wheel holds, and projects that have nothing but it."""
