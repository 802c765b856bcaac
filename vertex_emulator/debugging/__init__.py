"""The ports of this machine on which debuggers reach replicas."""
