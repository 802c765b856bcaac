"""The resources of a stack, created as its settings declare them, and its outputs."""
