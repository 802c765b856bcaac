"""Digests of files and folders, cached between previews, and archives that are equal for equal files."""
