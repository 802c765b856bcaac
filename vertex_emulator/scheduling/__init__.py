"""How jobs go on: the queue, and one reconciler for each kind of job."""
