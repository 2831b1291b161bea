"""The real Prometheus adapter on this machine, for tests: metrics of a Prometheus as Kubernetes' custom metrics API."""
