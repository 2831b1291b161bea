"""A campaign over the fields of the spec: set, changed, unset, emptied, refused, reverted, on a real API server.

`values` says what each field is given, `walks` orders it, `campaign` carries it out, `picture` and `judge` compare.
"""
