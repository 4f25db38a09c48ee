{{- define "servicenet.name" -}}
{{ default .Release.Name .Values.fullnameOverride }}
{{- end }}
{{- define "servicenet.label" -}}
{{ default (include "servicenet.name" .) .Values.nameOverride }}
{{- end }}
