"""`kubectl dsd rollout`: what pods were made from, back to an earlier one, new pods, and how far a roll-out is."""
