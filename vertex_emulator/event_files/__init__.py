"""TensorBoard's event files of jobs: where they lie, and the scalars in them, read as far as they are written."""
