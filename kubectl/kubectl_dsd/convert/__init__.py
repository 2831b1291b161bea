"""`kubectl dsd convert`: how somebody runs vLLM now, as a DSDDeployment that runs the same.

Pure but for `command`, which reads files and prints. `forms` take an input apart into a `Launch`: arguments,
variables, and what surrounds them. `arguments` and `environment` sort those by the field they belong to, `resource`
puts the DSDDeployment together and lets the operator's own rules judge it. vLLM's spellings, its option table and its
speculative config are read by `dsd_runtime`; nothing here parses them again.

Nothing is guessed silently: a `Report` collects what was decided (notes), what could not be carried over, and what ends
the conversion. No value that may be a secret leaves this package.
"""
