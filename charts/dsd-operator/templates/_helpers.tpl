{{/* Name of everything in this release; room is left for suffixes, and third parties may use it as a label. */}}
{{- define "dsd-operator.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Name of what is not namespaced: two releases of one name in two namespaces must not share it. */}}
{{- define "dsd-operator.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "dsd-operator.fullname" .) -}}
{{- end -}}

{{- define "dsd-operator.selectorLabels" -}}
app.kubernetes.io/name: dsd-operator
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* The version is the chart's: an image tag may hold characters that a label may not. */}}
{{- define "dsd-operator.labels" -}}
{{ include "dsd-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "dsd-operator.image" -}}
{{- printf "%s:%s" .image.repository (.image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}
