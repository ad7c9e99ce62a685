{{/* The name of all objects: that of the release, with the chart's name in it. */}}
{{- define "agent.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* What tells the agents of one release from those of another. */}}
{{- define "agent.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The port of /metrics and /healthz; "" for none. */}}
{{- define "agent.port" -}}
{{- if ne .Values.config.listen "off" -}}
{{ splitList ":" .Values.config.listen | last }}
{{- end -}}
{{- end -}}
