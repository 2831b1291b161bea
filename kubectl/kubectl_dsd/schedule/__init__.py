"""`kubectl dsd schedule`: the schedule that a deployment asks for, what its pods use, and a change of it."""
