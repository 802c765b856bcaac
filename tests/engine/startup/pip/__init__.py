"""Takes the place of pip for the engine of tests."""
