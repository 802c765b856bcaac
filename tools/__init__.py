"""Set-up of this checkout, and generators of its checked-in files."""
