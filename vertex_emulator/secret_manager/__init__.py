"""Secret Manager's `versions:access`: values from a file of the data folder, for this user and for containers."""
