"""Names of the API that every other part uses: group, version, kind."""

from typing import Final

GROUP: Final = "dsd-operator.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "DSDDeployment"
PLURAL: Final = "dsddeployments"
SINGULAR: Final = "dsddeployment"
SHORT_NAMES: Final = ("dsd",)
