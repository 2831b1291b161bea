"""The real operator process against a real API server. Pods do not run here; a stand-in answers for them."""
