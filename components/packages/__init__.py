"""PythonPackage: source distributions for `packageUris`, and their upload."""
