"""The forms in which people keep a command of vLLM; each module takes one of them apart into a `Launch`."""
