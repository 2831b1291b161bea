"""The one exception of this package: something a person can act on."""


class ClusterError(Exception):
    """A failure whose text says what went wrong and what to do; the command line prints it without a traceback."""
