"""vLLM's `--speculative-config` and our schedule: one into the other, without guessing silently.

Pure: no I/O, no vLLM. `from_vllm` takes a speculative config apart into the ranges of a schedule file and what remains
for vLLM, `to_vllm` puts both together again for a stock vLLM. What cannot be meant is a `ConvertError` with every
problem in it; what was decided on the way is a note for the person who asked. The command `dsd schedule convert` is
made of this, and `serve` checks methods with it.
"""

from dsd_runtime.convert.report import ConvertError
from dsd_runtime.convert.speculative import Conversion, from_vllm, to_vllm
from dsd_runtime.convert.table import read_table
from dsd_runtime.convert.text import parse_object

__all__ = ["Conversion", "ConvertError", "from_vllm", "parse_object", "read_table", "to_vllm"]
