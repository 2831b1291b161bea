"""The pinned tools. A version here and in ``go/<module>/go.mod`` change together (a unit test compares them)."""

from dataclasses import dataclass

KUBERNETES = "1.34.4"

_KUBERNETES_VERSION_FLAGS = " ".join(
    f"-X k8s.io/component-base/version.{name}={value}"
    for name, value in (
        ("gitVersion", f"v{KUBERNETES}"),
        ("gitMajor", KUBERNETES.split(".")[0]),
        ("gitMinor", KUBERNETES.split(".")[1]),
    )
)


@dataclass(frozen=True)
class Tool:
    """One program built from a Go module: the directory below ``go/`` that pins it, the package, the linker flags."""

    name: str
    module: str
    package: str
    version: str
    ldflags: str = "-s -w"


def _kubernetes(name: str) -> Tool:
    return Tool(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", KUBERNETES, f"-s -w {_KUBERNETES_VERSION_FLAGS}")


ETCD = Tool("etcd", "etcd", "go.etcd.io/etcd/server/v3", "3.6.16")
APISERVER = _kubernetes("kube-apiserver")
CONTROLLER_MANAGER = _kubernetes("kube-controller-manager")
KUBECTL = _kubernetes("kubectl")
SCHEDULER = _kubernetes("kube-scheduler")
KUBELET = _kubernetes("kubelet")
PROXY = _kubernetes("kube-proxy")
REGISTRY = Tool("registry", "registry", "github.com/distribution/distribution/v3/cmd/registry", "3.1.1")
COREDNS = Tool("coredns", "coredns", "github.com/coredns/coredns", "1.14.6")
HELM = Tool("helm", "helm", "helm.sh/helm/v3/cmd/helm", "3.22.0")
PROMETHEUS_OPERATOR = Tool(
    "prometheus-operator",
    "prometheus-operator",
    "github.com/prometheus-operator/prometheus-operator/cmd/operator",
    "0.85.0",
)
PROMETHEUS = Tool("prometheus", "prometheus", "github.com/prometheus/prometheus/cmd/prometheus", "0.305.0")
KWOK = Tool("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", "0.7.0")
LEADER_WORKER_SET = Tool("lws", "lws", "sigs.k8s.io/lws/cmd", "0.8.0")
KUBECONFORM = Tool("kubeconform", "kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform", "0.8.0")
PROMETHEUS_ADAPTER = Tool(
    "prometheus-adapter", "prometheus-adapter", "sigs.k8s.io/prometheus-adapter/cmd/adapter", "0.12.0"
)
NETWORK_POLICIES = Tool(
    "kube-network-policies", "kube-network-policies", "sigs.k8s.io/kube-network-policies/cmd", "0.8.0"
)
_KEDA = "2.19.0"
KEDA_OPERATOR = Tool("keda-operator", "keda", "github.com/kedacore/keda/v2/cmd/operator", _KEDA)
KEDA_METRICS_SERVER = Tool("keda-metrics-server", "keda", "github.com/kedacore/keda/v2/cmd/adapter", _KEDA)
HEALTH = Tool("health", "health", "dsd-operator.io/tools/cluster/health", "1")
PAUSE = Tool("pause", "pause", "dsd-operator.io/tools/cluster/pause", "1")

# The order is the order of building: what the API-only mode needs comes first.
API_ONLY_TOOLS = (ETCD, APISERVER, CONTROLLER_MANAGER, KUBECTL)
NODE_TOOLS = (*API_ONLY_TOOLS, SCHEDULER, KUBELET, PROXY, REGISTRY, COREDNS, PAUSE)
ALL_TOOLS = (
    *NODE_TOOLS,
    HELM,
    PROMETHEUS_OPERATOR,
    PROMETHEUS,
    PROMETHEUS_ADAPTER,
    NETWORK_POLICIES,
    KWOK,
    LEADER_WORKER_SET,
    KUBECONFORM,
    HEALTH,
)
# Built by the first test that needs them, and by no target of make: eight minutes of a core for one campaign.
ON_DEMAND_TOOLS = (KEDA_OPERATOR, KEDA_METRICS_SERVER)
