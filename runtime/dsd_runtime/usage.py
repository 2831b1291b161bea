"""The error of a command line that cannot be used."""


class UsageError(Exception):
    """The command line, the environment or a file it names cannot be used; the text says what to do."""
