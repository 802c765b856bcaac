"""What the Vertex AI training API is: its messages, rules, names and states, and a client. No Pulumi, no Docker."""

__version__ = "0.1.0"
__all__ = ["__version__"]
