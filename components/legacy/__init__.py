"""Jobs of the legacy AI Platform Training, and what becomes of them in Vertex AI: `python -m components.legacy`."""
