"""The real operator process, a proxy that misbehaves on request, and behind it the real API server."""
