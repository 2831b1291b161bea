"""The part of the DSD operator that runs inside the vLLM container.

`schedule`, `support`, `options`, `parameters` and `protocol` are its pure core, which the operator imports too: one
definition for both sides. Everything that touches vLLM imports it lazily, so this package can be imported where vLLM is
not installed.
"""

__version__ = "0.1.0"
