{{/*
Labels of monitors and rules: the chart's own, and those by which a Prometheus selects what it takes (`release: …`). One
map, so that no label stands there twice.
*/}}
{{- define "dsd-operator.monitoringLabels" -}}
{{- $own := include "dsd-operator.labels" .root | fromYaml -}}
{{- toYaml (merge (dict) $own (.labels | default dict) (.root.Values.monitoring.labels | default dict)) -}}
{{- end -}}
