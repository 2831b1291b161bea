"""Fixed names of the demo. The operator's release is the test bed's: one cluster holds one operator."""

from typing import Final

NAMESPACE: Final = "dsd-demo"
RESOURCE: Final = "demo"
SAMPLE: Final = "samples/demo-smollm2.yaml"
MODEL_CLAIM: Final = "dsd-demo-models"
