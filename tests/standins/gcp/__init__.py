"""A stand-in for the gcp provider: it knows the real one's properties, and makes nothing anywhere."""
