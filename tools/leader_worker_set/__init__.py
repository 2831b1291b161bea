"""The real controller of LeaderWorkerSets on this machine, for tests: the program and its admission webhooks."""
