"""What a release consists of, and whether this checkout is fit to be one: `python -m tools.release --help`.

Wheels, source distributions, the chart, bills of materials, notices of licences. Nothing here publishes anything.
"""
