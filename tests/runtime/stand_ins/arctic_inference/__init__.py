"""Stands in for the package arctic-inference, which vLLM's suffix proposer needs and no wheel of which exists.

Its source builds with compilers and another PyTorch only. Here is the one class that vLLM uses, with the same interface
and a plain search in place of the suffix tree; everything else of the engine under test is vLLM's own. Version 0.1.1 of
the package itself, its suffix tree compiled by hand, did the same here: equal outputs at the maximum, an AssertionError
of vLLM's proposer at any K below.
"""
