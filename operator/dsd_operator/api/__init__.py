"""The API: frozen models of a DSDDeployment and everything its CRD says. Pure; imported by all other parts."""

from dsd_operator.api.resource import DSDDeployment, InvalidResource, Metadata, parse
from dsd_operator.api.spec import Spec

__all__ = ["DSDDeployment", "InvalidResource", "Metadata", "Spec", "parse"]
