{{/* What the operator may do in the namespaces that it serves: by a ClusterRole in all, by a Role in each of some. */}}
{{- define "dsd-operator.rules" -}}
# The resources themselves are only read; what the operator has to say goes into their status.
- apiGroups: [dsd-operator.io]
  resources: [dsddeployments]
  verbs: [get, list, watch]
# What became of it: conditions, counts, the schedule in the pods.
- apiGroups: [dsd-operator.io]
  resources: [dsddeployments/status]
  verbs: [patch]
# Children are made and kept by server-side apply; owner references delete them.
- apiGroups: [""]
  resources: [configmaps, serviceaccounts, services]
  verbs: [get, list, watch, create, patch]
# A workload is deleted when spec.engine.nodes asks for the other kind, and the last of its pods has gone.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
# The workload of engines over several nodes, in place of the Deployment; deleted as that is.
- apiGroups: [leaderworkerset.x-k8s.io]
  resources: [leaderworkersets]
  verbs: [get, create, patch, delete]
# The monitor for the Prometheus operator, where the cluster has the kind; deleted when spec.monitoring no longer asks.
- apiGroups: [monitoring.coreos.com]
  resources: [podmonitors]
  verbs: [get, create, patch, delete]
# A Gateway's way to the engines; deleted when spec.gateway no longer asks for it.
- apiGroups: [inference.networking.k8s.io]
  resources: [inferencepools]
  verbs: [get, create, patch, delete]
# The route from a Gateway to the engines; deleted when spec.gateway no longer asks for it.
- apiGroups: [gateway.networking.k8s.io]
  resources: [httproutes]
  verbs: [get, create, patch, delete]
# The budget for evictions; deleted when spec.podDisruptionBudget no longer asks.
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
# Who may reach the engines; deleted when spec.networkPolicy no longer asks.
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
# Whether an autoscaler is why somebody else has set the replicas of a child: then they are left to it.
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [list]
# A cache's claim: made and grown, never deleted but with the resource. One that a resource names is only read.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, create, patch]
# What was rendered for each envelope of a resource, so that an upgrade restarts no pod; the oldest are deleted.
- apiGroups: [apps]
  resources: [controllerrevisions]
  verbs: [list, create, patch, delete]
# What stands between a workload and its pods: which pods are of which child, and why none can be made.
- apiGroups: [apps]
  resources: [replicasets, statefulsets]
  verbs: [list]
# The engines: their states for the status, their addresses to push schedules to.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
# Events about a resource, when a condition of it changes.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}
