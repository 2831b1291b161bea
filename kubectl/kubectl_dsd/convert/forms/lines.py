"""A vLLM command line, from words or from shell text."""

from kubectl_dsd.convert.forms import programs
from kubectl_dsd.convert.inputs import Input
from kubectl_dsd.convert.launch import Launch, Variable
from kubectl_dsd.convert.shell import Splitter
from kubectl_dsd.convert.variables import Variables


def read(source: Input, variables: Variables) -> Launch | None:
    """The engine; None where there is a problem, which was told."""
    report = variables.report
    if source.words is None:
        found = programs.read_script(source.text, variables)
        if found is None and not report.problems:
            found = _bare(source.text, variables)
    elif text := programs.foreign(source.words):
        report.problem("", text)
        return None
    else:
        found = programs.read_words(source.words, variables) or programs.Found(list(source.words))
    if found is None:
        if not report.problems:
            report.problem("", "no command of vLLM is in this; it begins with `vllm serve`. Another form: --from")
        return None
    return Launch("vllm", found.arguments, [Variable(name, value) for name, value in found.variables.items()])


def _bare(text: str, variables: Variables) -> programs.Found | None:
    """Only the arguments, without a program: `acme/model --speculative-config …`, or lines of options."""
    commands = Splitter(Variables(variables.report, variables.wanted)).split(text)
    words = [word for command in commands for word in command.words]
    return programs.Found(words) if any(word.startswith(("--", "-sc")) for word in words) else None
