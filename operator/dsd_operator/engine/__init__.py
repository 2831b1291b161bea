"""Everything that talks to the engine pods, over HTTP."""
