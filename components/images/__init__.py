"""TrainingImage: build contexts and their digests, autopackaging, builds on this machine or in Cloud Build, pushes."""
