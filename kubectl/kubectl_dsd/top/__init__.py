"""`kubectl dsd top`: what the engines do now, refreshed in place."""
