"""Run background work: the queue with its leases, and cleanup."""
