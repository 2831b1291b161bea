"""kopf: the watches, and nothing else. Each event puts one key into the work queue."""
