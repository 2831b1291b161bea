"""What the end-to-end tests and the benchmarks share: a client of the cluster, of a pod, and load."""
