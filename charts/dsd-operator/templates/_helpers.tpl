{{/*
Name of everything in this release; room is left for suffixes, and third parties may use it as a label. A release's name
may start with a digit, a Service's may not.
*/}}
{{- define "dsd-operator.fullname" -}}
{{- $name := .Values.fullnameOverride -}}
{{- if not $name -}}
{{- $name = contains .Chart.Name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) -}}
{{- end -}}
{{- if regexMatch "^[0-9]" $name -}}{{- $name = printf "dsd-%s" $name -}}{{- end -}}
{{- $name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{/*
Name of what is not in the release's own namespace. Namespace and name joined by a dash may be those of another release too
(`team` and `a-dsd-operator`, `team-a` and `dsd-operator`), so the hash of both tells releases apart. At most 63 characters.
*/}}
{{- define "dsd-operator.clusterName" -}}
{{- $name := printf "%s-%s" .Release.Namespace (include "dsd-operator.fullname" .) | trunc 54 | trimSuffix "-" -}}
{{- printf "%s/%s" .Release.Namespace .Release.Name | sha256sum | trunc 8 | printf "%s-%s" $name -}}
{{- end -}}

{{- define "dsd-operator.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "dsd-operator.fullname" .) -}}
{{- end -}}

{{- define "dsd-operator.selectorLabels" -}}
app.kubernetes.io/name: dsd-operator
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* The same labels as NAME=VALUE, separated by commas. */}}
{{- define "dsd-operator.selectorPairs" -}}
{{- $pairs := list -}}
{{- range $key, $value := include "dsd-operator.selectorLabels" . | fromYaml -}}
{{- $pairs = append $pairs (printf "%s=%s" $key $value) -}}
{{- end -}}
{{- join "," $pairs -}}
{{- end -}}

{{/* The version is the chart's: an image tag may hold characters that a label may not. */}}
{{- define "dsd-operator.labels" -}}
{{ include "dsd-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- with .Values.extraLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A reference to an image: by tag, by digest, or by both. */}}
{{- define "dsd-operator.image" -}}
{{- $tag := .image.tag | default (ternary "" .root.Chart.AppVersion (ne .image.digest "")) -}}
{{- .image.repository }}{{ with $tag }}:{{ . }}{{ end }}{{ with .image.digest }}@{{ . }}{{ end -}}
{{- end -}}
