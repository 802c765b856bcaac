"""Stand-ins for what cannot run on one machine: Google's cloud. Each says in its name and its docs that it is one."""
