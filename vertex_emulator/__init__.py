"""Vertex AI training on this machine: the API of custom training and tuning, run in Docker."""
