"""Cloud Storage over HTTP: its routes, and the forms of requests and replies."""
