"""What people write: the shapes of declarations and stack files, text formats, references, and positions in files."""
