"""CEL in the CRD: the `Rule`, and how values are written in CEL.

Only functions of Kubernetes 1.29 are used. The API server estimates every rule's cost from the declared bounds
(lengths, item counts), so whatever a rule looks at must be bounded.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """One CEL rule (`x-kubernetes-validations`): `rule` must hold, else `message` tells the user what to do.

    `message_expression` builds the message from the value; `message` is then what is shown when that fails.
    `field_path` moves the error from the object that carries the rule to one of its fields (`.model`).
    """

    rule: str
    message: str
    message_expression: str | None = None
    field_path: str | None = None

    def dump(self) -> dict[str, str]:
        """As the CRD spells it."""
        optional = {"messageExpression": self.message_expression, "fieldPath": self.field_path}
        return {"rule": self.rule, "message": self.message, **{k: v for k, v in optional.items() if v is not None}}


def quote(text: str) -> str:
    """A CEL string literal."""
    return json.dumps(text)


def raw(pattern: str) -> str:
    """A raw CEL string literal, for regular expressions."""
    return f'r"""{pattern}"""'


def one_of(value: str, names: Iterable[str]) -> str:
    """The expression `value in [names…]`."""
    return f"{value} in [{', '.join(quote(n) for n in names)}]"


def first_of(cases: Iterable[tuple[str, str]], otherwise: str) -> str:
    """A message expression: the text of the first case whose condition holds. Conditions are CEL, texts are literal."""
    return "".join(f"{condition} ? {quote(text)} : " for condition, text in cases) + quote(otherwise)
