{{/* The image of all programs. */}}
{{- define "muster.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote -}}
{{- end -}}

{{/* The first of a list that is given: 0 is, null is not. */}}
{{- define "muster.given" -}}
{{- $value := index . 0 -}}
{{- if kindIs "invalid" $value }}{{ index . 1 }}{{ else }}{{ int64 $value }}{{ end -}}
{{- end -}}

{{/* What every pod has beside its containers. */}}
{{- define "muster.pod" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
{{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}

{{/* Settings as environment variables: lists and maps as JSON, and no whole number as 1e+06. */}}
{{- define "muster.env" -}}
{{- $prefix := .prefix -}}
{{- range $name, $value := .settings }}
- name: {{ $prefix }}{{ $name }}
{{- if or (kindIs "slice" $value) (kindIs "map" $value) }}
  value: {{ toJson $value | quote }}
{{- else if and (kindIs "float64" $value) (eq (floor $value) $value) }}
  value: {{ int64 $value | quote }}
{{- else }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end }}
{{- end -}}
