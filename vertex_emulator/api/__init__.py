"""The HTTP side: Vertex's REST methods, Cloud Logging's entries:list, and what the command line asks for."""
