"""gRPC on the ports that answer REST: a process of its own translates it, from the first call on."""
