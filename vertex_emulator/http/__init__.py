"""What every HTTP request passes: access checks, limits on its body, its query parameters."""
