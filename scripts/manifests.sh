#!/bin/sh
# Writes what deploy/helm/ebpfprof-agent renders without any value of one's own as plain manifests.
#
#   manifests.sh HELM DIR   render with the program HELM into DIR: deploy, or a test's
set -eu

if [ $# -ne 2 ]; then
	echo "usage: manifests.sh HELM DIR" >&2
	exit 2
fi
helm=$1
to=$2
chart=$(dirname "$0")/../deploy/helm/ebpfprof-agent

render() { # its arguments are helm's
	rendered=$("$helm" template ebpfprof-agent "$chart" "$@")
	printf '%s\n' "$rendered" | sed '/^# Source: /d'
}

{
	cat <<'END'
# ebpfprof-agent in Kubernetes: one on each node, which finds the jobs of all pods. Put these into a namespace that
# allows host PIDs and capabilities (pod-security.kubernetes.io/enforce: privileged). The image is that of make release,
# in a registry of yours. It talks to no API server: no service account, no RBAC.
#
# `make manifests` writes this from the chart in deploy/helm, whose values.yaml says what everything is for.
END
	render --show-only templates/config.yaml --show-only templates/daemonset.yaml
} >"$to/agent-daemonset.yaml"
{
	cat <<'END'
# For clusters with Prometheus's operator: its metrics are scraped from each pod of deploy/agent-daemonset.yaml.
# deploy/alerts.yaml has the rules. `make manifests` writes this from the chart in deploy/helm.
END
	render --show-only templates/podmonitor.yaml --set podMonitor.enabled=true
} >"$to/agent-podmonitor.yaml"
