"""Jobs of the legacy AI Platform Training, and what becomes of them in Vertex AI: `vertex-training convert-legacy`."""
