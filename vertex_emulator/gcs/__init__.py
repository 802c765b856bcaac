"""Cloud Storage's JSON API on the bucket folder: files below `/gcs` are its objects, and the reverse."""
