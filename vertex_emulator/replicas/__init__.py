"""What a replica is given: the service's environment and the expansion of references in a container's fields."""
