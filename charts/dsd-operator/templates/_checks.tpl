{{/* What the schema cannot say about the values: each mistake ends the rendering with the way out. */}}
{{- define "dsd-operator.checkValues" -}}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) -}}
{{- fail "serviceAccount.create is false: set serviceAccount.name to the ServiceAccount that the operator shall use" -}}
{{- end -}}
{{- range $name := list "image" "engineImage" -}}
{{- $image := index $.Values $name -}}
{{- if and $image.digest (contains "@" $image.tag) -}}
{{- fail (printf "%s.tag ends in a digest and %s.digest is set: keep one of them" $name $name) -}}
{{- end -}}
{{- end -}}
{{- $selector := include "dsd-operator.selectorLabels" . | fromYaml -}}
{{- $own := merge (dict "app.kubernetes.io/version" "" "app.kubernetes.io/managed-by" "" "helm.sh/chart" "") $selector -}}
{{- range $key, $_ := .Values.extraLabels -}}
{{- if hasKey $own $key -}}
{{- fail (printf "extraLabels may not hold %s: the chart sets this label itself" $key) -}}
{{- end -}}
{{- end -}}
{{- range $key, $_ := .Values.podLabels -}}
{{- if hasKey $selector $key -}}
{{- fail (printf "podLabels may not hold %s: the Deployment selects its pod by this label" $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
A CRD that an installed release keeps up to date is not taken from it: this ends the rendering with what to do instead.
Once that release is gone, or has crds.install=false, Helm itself decides: it wants --take-ownership. `lookup` finds
nothing where there is no cluster (helm template), so that nothing is checked there.
*/}}
{{- define "dsd-operator.checkCrdOwner" -}}
{{- $crd := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "dsddeployments.dsd-operator.io" -}}
{{- $notes := dig "metadata" "annotations" (dict) $crd -}}
{{- $release := get $notes "meta.helm.sh/release-name" -}}
{{- $namespace := get $notes "meta.helm.sh/release-namespace" -}}
{{- if and $release $namespace (ne (printf "%s/%s" $namespace $release) (printf "%s/%s" .Release.Namespace .Release.Name)) -}}
{{- range (lookup "apps/v1" "Deployment" $namespace "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- $installs := dig "metadata" "annotations" "dsd-operator.io/installs-crd" "true" . -}}
{{- if and (eq (get $labels "app.kubernetes.io/name") "dsd-operator") (eq (get $labels "app.kubernetes.io/instance") $release) (eq $installs "true") -}}
{{- fail (printf (include "dsd-operator.crdIsTaken" $) $release $namespace $release $namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "dsd-operator.crdIsTaken" }}
The CRD dsddeployments.dsd-operator.io belongs to release %s in namespace %s, and a cluster has one.
Install this release without it, and without a second copy of the dashboards:
  --set crds.install=false --set dashboards.enabled=false
To hand the CRD over instead, upgrade release %s in namespace %s with --reset-then-reuse-values --set crds.install=false first,
then repeat this command with --take-ownership.
{{- end -}}
