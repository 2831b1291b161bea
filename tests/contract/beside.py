"""What stands beside the pods (Service, NetworkPolicy, PodDisruptionBudget): what the API server takes and refuses."""

from typing import Final

from tests.contract.admission import Case


def _service(text: str) -> str:
    return f"spec: {{service: {{{text}}}}}"


def _peer(text: str) -> str:
    return f"spec: {{networkPolicy: {{enabled: true, clients: [{text}]}}}}"


_BAD_SERVICE: Final = (
    Case("service-type-unknown", _service("type: ExternalName"), 'supported values: "ClusterIP", "NodePort"'),
    Case("service-port-0", _service("port: 0"), "greater than or equal to 1"),
    Case("service-port-beyond", _service("port: 65536"), "less than or equal to 65535"),
    Case("service-port-quoted", _service("port: '80'"), "must be of type integer"),
    Case("service-port-by-name", _service("port: http"), "must be of type integer"),
    Case("node-port-of-cluster-ip", _service("nodePort: 30080"), "a node port needs type NodePort or LoadBalancer"),
    Case(
        "external-policy-of-cluster-ip",
        _service("externalTrafficPolicy: Local"),
        "traffic from outside needs type NodePort or",
    ),
    Case("class-of-node-port", _service("type: NodePort, loadBalancerClass: a/b"), "class needs type LoadBalancer"),
    Case("ranges-of-cluster-ip", _service("loadBalancerSourceRanges: [10.0.0.0/8]"), "ranges need type LoadBalancer"),
    Case("range-without-length", _service("type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.1]"), "should match"),
    Case("family-unknown", _service("ipFamilyPolicy: DualStack"), '"PreferDualStack", "RequireDualStack"'),
    Case("service-label-ours", _service("labels: {app.kubernetes.io/name: x}"), "choose another label"),
    Case("service-label-value", _service("labels: {team: 'a b'}"), "spec.service.labels.team in body should match"),
    Case("annotation-key", _service("annotations: {'a b': x}"), "a b is not an annotation name"),
    Case("annotation-ours", _service("annotations: {dsd-operator.io/x: y}"), "choose another annotation"),
    Case("service-annotation-number", _service("annotations: {a: 1}"), "must be of type string"),
    Case("service-misspelt", _service("ports: [80]"), 'unknown field "spec.service.ports"'),
)

_BAD_NETWORK: Final = (
    Case("policy-as-flag", "spec: {networkPolicy: true}", "must be of type object"),
    Case("policy-peer-empty", _peer("{}"), "name either ipBlock, or podSelector and namespaceSelector"),
    Case("policy-peer-both", _peer("{ipBlock: {cidr: 10.0.0.0/8}, podSelector: {}}"), "name either ipBlock"),
    Case("policy-peer-as-name", _peer("monitoring"), "must be of type object"),
    Case("policy-block-without-length", _peer("{ipBlock: {cidr: 10.0.0.1}}"), "cidr in body should match"),
    Case(
        "policy-operator-unknown", _peer("{podSelector: {matchExpressions: [{key: a, operator: Is}]}}"), '"In", "NotIn"'
    ),
    Case(
        "policy-in-without-values", _peer("{podSelector: {matchExpressions: [{key: a, operator: In}]}}"), "need values"
    ),
    Case(
        "policy-exists-with-values",
        _peer("{podSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}"),
        "Exists and DoesNotExist take none",
    ),
    Case("policy-from", "spec: {networkPolicy: {from: []}}", 'unknown field "spec.networkPolicy.from"'),
)

_BAD_DISRUPTION: Final = tuple(
    Case(f"budget {value}", f"spec: {{podDisruptionBudget: {{maxUnavailable: {value}}}}}", words)
    for value, words in (
        ("0", "no node with one of these pods could ever be drained"),
        ("-1", "a number of pods from 1"),
        ("'0%'", "or a share such as 25%"),
        ("'1'", "or a share such as 25%"),
        ("'101%'", "or a share such as 25%"),
        ("half", "or a share such as 25%"),
        ("1.5", "podDisruptionBudget.maxUnavailable"),
        ("2147483648", "a number of pods from 1"),
    )
)

_GOOD_SERVICE: Final = (
    Case("service-empty", "spec: {service: {}}"),
    Case("service-null", "spec: {service: null, networkPolicy: null, podDisruptionBudget: null}"),
    *(
        Case(f"service {text}", f"spec: {{service: {{{text}}}}}")
        for text in (
            "type: NodePort",
            "type: NodePort, nodePort: 30080",
            "port: 80",
            "type: LoadBalancer, port: 443",
            "type: LoadBalancer, loadBalancerClass: example.com/lb, loadBalancerSourceRanges: [10.0.0.0/8, 'fd00::/8']",
            "type: LoadBalancer, externalTrafficPolicy: Local, nodePort: 30081",
            "type: NodePort, externalTrafficPolicy: Local",
            "ipFamilyPolicy: PreferDualStack",
            "ipFamilyPolicy: RequireDualStack",
            "annotations: {cloud.example.com/type: nlb, empty: ''}, labels: {team: a, x/y: b}",
            "annotations: null, labels: null",
        )
    ),
)

_NAMESPACE: Final = "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}"

_GOOD_NETWORK: Final = (
    Case("network-policy", "spec: {networkPolicy: {enabled: true}}"),
    Case("network-policy-nobody", "spec: {networkPolicy: {enabled: true, clients: [], monitoring: []}}"),
    *(
        Case(
            f"peer {peer}",
            f"spec: {{networkPolicy: {{enabled: true, clients: [{{{peer}}}], monitoring: [{{{peer}}}]}}}}",
        )
        for peer in (
            _NAMESPACE,
            f"{_NAMESPACE}, podSelector: {{matchLabels: {{app: prometheus}}}}",
            "podSelector: {}",
            "podSelector: {matchExpressions: [{key: a/b, operator: NotIn, values: [x]}, {key: c, operator: Exists}]}",
            "ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}",
            "ipBlock: {cidr: '::/0'}",
        )
    ),
)

_GOOD_DISRUPTION: Final = (
    Case("budget-off", "spec: {podDisruptionBudget: {enabled: false}}"),
    *(
        Case(f"budget {value}", f"spec: {{podDisruptionBudget: {{maxUnavailable: {value}}}}}")
        for value in ("1", "12", "2147483647", "25%", "1%", "100%")
    ),
)

ACCEPTED: Final = (*_GOOD_SERVICE, *_GOOD_NETWORK, *_GOOD_DISRUPTION)
REJECTED: Final = (*_BAD_SERVICE, *_BAD_NETWORK, *_BAD_DISRUPTION)
