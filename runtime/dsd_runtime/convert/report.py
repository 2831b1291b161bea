"""What a conversion found on its way: problems, which end it, and notes, which the person should read."""

from collections.abc import Sequence

from dsd_runtime.schedule import Problem


class ConvertError(ValueError):
    """The input cannot be converted. `problems` says what is wrong and what to do, all at once."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{p.field}: {p.message}" if p.field else p.message for p in problems))
        self.problems = tuple(problems)


class Report:
    """Collects problems and notes."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.notes: list[Problem] = []

    def problem(self, field: str, message: str) -> None:
        """Something that ends the conversion."""
        self.problems.append(Problem(field, message))

    def note(self, field: str, message: str) -> None:
        """Something that was decided, or that will surprise."""
        self.notes.append(Problem(field, message))

    def raise_problems(self) -> None:
        """Raise ConvertError if there is a problem."""
        if self.problems:
            raise ConvertError(self.problems)
