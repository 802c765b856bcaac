"""Data that jobs train on: what a stack declares of it, what `data.lock` has of it, and what is there now."""
