"""What all HTTP requests share: access checks, limits on bodies, query parameters, responses."""
