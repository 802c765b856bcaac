"""Parity: the same requests to Vertex AI and to the emulator, and where their answers differ."""
