"""TrainingImage: the build context and its digest, `.dockerignore`, autopackaging, builds and pushes."""
