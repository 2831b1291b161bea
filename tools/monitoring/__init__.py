"""A real Prometheus on loopback, for tests and pictures: the programs, the server, and its queries."""
