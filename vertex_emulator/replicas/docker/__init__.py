"""What runs replicas: the executor's protocol, and Docker behind it."""
