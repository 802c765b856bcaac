"""Vertex AI training on this machine: the API of custom training and tuning, run in Docker."""

__version__ = "0.1.0"
__all__ = ["__version__"]
