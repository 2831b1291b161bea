"""`make demo`: the whole path once, for a person to watch. `story` tells it, the other modules do one thing each.

It uses what a user would use (kubectl, helm, HTTP) and prints the commands, so that each can be repeated by hand.
"""
