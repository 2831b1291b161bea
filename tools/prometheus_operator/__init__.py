"""The real Prometheus operator on this machine, for tests: its CRDs, the program, the configuration that it makes."""
