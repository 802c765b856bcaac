"""The jobs of a stack, each one value wherever it comes from, and all that is judged and shown of them together."""
