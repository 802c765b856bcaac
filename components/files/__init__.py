"""Content digests of folders, remembered between previews, and archives that are equal for equal files."""
