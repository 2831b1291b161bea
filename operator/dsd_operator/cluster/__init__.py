"""Everything that talks to the API server. The only part that imports the Kubernetes client."""
