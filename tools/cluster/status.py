"""What runs, for a person."""

import os

from tools.cluster import components, full_node, gobuild, node, registry, versions


def render() -> str:
    """Several lines: the cluster in use, each component with pid and log, and which programs are built."""
    named = os.environ.get("DSD_KUBECONFIG")
    lines = [f"DSD_KUBECONFIG names an existing cluster: {named}"] if named else []
    layout = full_node.layout()
    plane = full_node.recorded_plane()
    if plane is None:
        lines.append("node: does not run")
    else:
        ready = plane.client.node_ready(node.NODE_NAME)
        lines.append(f"node: {'Ready' if ready else 'not Ready'}, kubeconfig {layout.kubeconfig}")
    for one in [*components.known(layout), *components.known(registry.layout())]:
        identity = one.identity()
        state = f"pid {identity.pid}" if identity and one.running() else "not running"
        lines.append(f"  {one.name:24} {state:14} {one.log}")
    built = sum(gobuild.binary(tool).exists() for tool in versions.ALL_TOOLS)
    lines.append(f"programs: {built} of {len(versions.ALL_TOOLS)} built")
    return "\n".join(lines)
