#!/bin/bash
# Shows the agent on a real node of Kubernetes, as root: a PyTorch pod trains, the chart's DaemonSet finds it, names it by
# its pod, records a window, uploads it to a bucket in the cluster, and fleet report reads it; the pod is deleted and comes
# back, and the node is drained. What was done and seen is written into docs/cluster.md.
#
#   run.sh DIR HELM VERSION   DIR keeps Kubernetes' programs and the pods' root file system; HELM is the program;
#                             bin/ has both of ebpfprof's, of that VERSION
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
usage="usage: run.sh DIR HELM VERSION"
dir=$(realpath -m "${1:?$usage}") helm=${2:?$usage} version=${3:?$usage}
arch=$(go env GOARCH)
page=$(mktemp)
export KUBECONFIG=$dir/run/admin.conf PATH=$dir/bin:$PATH
export AWS_ACCESS_KEY_ID=cluster AWS_SECRET_ACCESS_KEY="a secret of the cluster" AWS_REGION=us-east-1

say() { # a sentence
	printf '\n%s\n\n' "$*" | fold -s -w 118 | sed 's/ *$//' >>"$page"
	echo "$*"
}

# What is run is on the page with its output, without this machine's paths and the bucket's address.
shown() { # a command
	local out
	out=$("$@" 2>&1) || {
		echo "$* failed:" >&2
		echo "$out" >&2
		return 1
	}
	{
		echo '```'
		printf '$ %s\n%s\n' "$(printf '%q ' "$@" | sed "s|\\\\||g; s| \$||")" "$out" | sed "s|$dir/bin/||g; s|$helm|helm|g; s|$root/||g; s|$dir|DIR|g"
		echo '```'
	} | tee -a "$page"
}

until_true() { # seconds, what is waited for, and a command
	local patience=$1 what=$2 end
	shift 2
	end=$((SECONDS + patience))
	until "$@" >/dev/null 2>&1; do
		if [ $SECONDS -ge $end ]; then
			echo "cluster: no $what within $patience s" >&2
			return 1
		fi
		sleep 1
	done
}

agent() { kubectl -n profiling get pods -l app.kubernetes.io/name=ebpfprof-agent -o jsonpath='{.items[0].metadata.name}'; }
asked() { kubectl get --raw "/api/v1/namespaces/profiling/pods/$(agent):9757/proxy/$1"; }

# job prints what the agent says of the job: a field of /jobs.
job() { # an expression of Python's about j
	asked jobs | python3 -c "
import json, sys
for j in json.load(sys.stdin):
    if j['name'] == 'ml/train-0/trainer':
        print($1)"
}
holds() { [ "$(job "$1")" = True ]; }
stored() { find "$dir/run/objects/profiles" -path "*/upload/*" -name '*.parquet' -newer "$1" | grep -q .; }
found_again() { holds "str(j['pids']) != '$1' and j['worker_pid'] > 0 and j['status']['state'] == 'watching'"; }

# fetched is what a run needs, and the next one finds there.
fetched() {
	if [ "$(id -u)" -ne 0 ]; then
		echo "cluster: a kubelet and containerd need root: run sudo make cluster" >&2
		exit 1
	fi
	if ! command -v etcd containerd runc mmdebstrap >/dev/null || [ ! -x /usr/lib/cni/ptp ]; then
		DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends etcd-server containerd runc \
			containernetworking-plugins mmdebstrap >/dev/null || {
			echo "cluster: apt-get could not install etcd-server, containerd, runc, containernetworking-plugins and mmdebstrap" >&2
			exit 1
		}
	fi
	mkdir -p "$dir"
	"$here/kubernetes.sh" "$dir"
	if [ ! -s "$dir/torch.tar.gz" ]; then
		mmdebstrap --quiet --variant=essential --include=python3-torch --aptopt='Apt::Install-Recommends "false"' \
			--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' bookworm "$dir/torch.new.tar.gz"
		mv "$dir/torch.new.tar.gz" "$dir/torch.tar.gz"
	fi
}

# at says where the bucket is.
at() {
	kubectl -n storage rollout status deployment/versitygw --timeout=180s >/dev/null
	store="s3://profiles/fleet?endpoint=http://$(kubectl -n storage get pods -l app=versitygw -o jsonpath='{.items[0].status.podIP}'):7070"
}

# window asks for one, and shows the report that has it.
window() {
	until_true 120 "steps of the job" holds "j['status']['steps'] > 50"
	touch "$dir/run/before"
	shown bin/ebpfprof fleet capture "$store" --job ml/train-0/trainer --key-file "$dir/run/fleet.key"
	until_true 120 "window" holds "j['status']['windows'] > 0"
	until_true 120 "upload of the window" stored "$dir/run/before"
	shown bin/ebpfprof fleet report "$store" --job ml/train-0/trainer
}

import_root() {
	local sum
	sum=$(gzip -dc "$dir/torch.tar.gz" | sha256sum | cut -d' ' -f1)
	mkdir -p "$dir/run/image"
	cd "$dir/run/image"
	ln -sf "$dir/torch.tar.gz" layer.tar
	printf '{"architecture":"%s","os":"linux","config":{"Env":["PATH=/usr/bin:/bin"],"Cmd":["sleep","infinity"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
		"$arch" "$sum" >config.json
	printf '[{"Config":"config.json","RepoTags":["localhost/torch:1"],"Layers":["layer.tar"]}]' >manifest.json
	tar -chf - config.json manifest.json layer.tar | ctr -a "$dir/run/containerd.sock" -n k8s.io images import - >/dev/null
	cd "$root"
}

failed() {
	{
		kubectl get pods -A -o wide
		kubectl -n profiling describe pods | tail -30
		kubectl -n profiling logs daemonset/fleet-ebpfprof-agent --tail 60
		kubectl -n ml logs train-0 --tail 20
		asked jobs
	} >"$dir/log/failure" 2>&1 || true
	echo "cluster: what the cluster said is in $dir/log/failure" >&2
}

clean() {
	local code=$?
	[ $code -eq 0 ] || failed
	kubectl delete statefulsets,deployments,daemonsets --all -A --timeout=60s >/dev/null 2>&1 || true
	kubectl wait --for=delete pods --all -A --timeout=60s >/dev/null 2>&1 || true
	"$here/node.sh" down "$dir"
	rm -f "$page"
	exit $code
}

cd "$root"
fetched
"$here/node.sh" down "$dir" # of a run that was killed
echo "# On a real node of Kubernetes" >"$page"
say "Written by \`make cluster\` on $(date -u +%F): one node of Kubernetes $(cat "$dir/version"), built from the Go proxy, with" \
	"Debian's containerd $(containerd --version | cut -d' ' -f3 | cut -d~ -f1) and" \
	"runc $(runc --version | sed -n '1s/runc version //p'), Linux $(uname -r)," \
	"control groups of version $([ -e /sys/fs/cgroup/cgroup.controllers ] && echo 2 || echo 1), and" \
	"helm $("$helm" version --template '{{.Version}}'). ebpfprof is $version. What follows was run and printed then."

trap clean EXIT
"$here/node.sh" up "$dir"
import_root
go run ./internal/dev/release -agent bin/ebpfprof-agent -arch "$arch" -version "$version" -o "$dir/run/release"
ctr -a "$dir/run/containerd.sock" -n k8s.io images import "$dir/run/release/ebpfprof-agent-$arch.oci.tar" >/dev/null
mkdir -p "$dir/run/objects/profiles"

echo "the bucket"
sed "s|@versitygw@|$("$root/scripts/versitygw.sh" --path)|; s|@objects@|$dir/run/objects|" "$here/store.yaml" | kubectl apply -f - >/dev/null
at

head -c 32 /dev/urandom | base64 >"$dir/run/fleet.key"
chmod 600 "$dir/run/fleet.key"
kubectl create namespace profiling >/dev/null
kubectl -n profiling create secret generic store --from-literal="AWS_ACCESS_KEY_ID=$AWS_ACCESS_KEY_ID" \
	--from-literal="AWS_SECRET_ACCESS_KEY=$AWS_SECRET_ACCESS_KEY" --from-literal="AWS_REGION=$AWS_REGION" >/dev/null
kubectl -n profiling create secret generic fleet --from-file="fleet.key=$dir/run/fleet.key" >/dev/null

say "The chart is installed, with a bucket in the cluster (versitygw) for its store."
shown "$helm" install fleet deploy/helm/ebpfprof-agent --namespace profiling --values scripts/cluster/agent.yaml --set "image.tag=$version" \
	--set "config.store=$store" --set "config.spool=/var/lib/ebpfprof/spool" --set "stateDir=$dir/run/state" --wait --timeout 3m
kubectl -n profiling rollout status daemonset/fleet-ebpfprof-agent --timeout=180s >/dev/null
shown kubectl -n profiling get pods -o 'custom-columns=NAME:.metadata.name,STATUS:.status.phase,CAPABILITIES:.spec.containers[0].securityContext.capabilities.add,PRIVILEGED:.spec.containers[0].securityContext.privileged'

say "A pod trains: Debian's PyTorch, one process. The agent calls the job by its namespace, pod and container."
kubectl apply -f scripts/cluster/job.yaml >/dev/null
until_true 180 "job ml/train-0/trainer that the agent has found" holds "j['worker_pid'] > 0 and j['status']['state'] == 'watching'"
shown kubectl -n ml logs train-0
shown kubectl -n profiling logs daemonset/fleet-ebpfprof-agent --tail 8

say "A window is requested, with the fleet's key, and its patterns are in the bucket."
window

say "The pod is deleted, and comes back with another process: the job is the same."
pids=$(job "j['pids']")
shown kubectl -n ml delete pod train-0
until_true 180 "job that the agent has found again" found_again "$pids"
until_true 120 "steps of the job that has come back" holds "j['status']['steps'] > 50"
touch "$dir/run/before"
until_true 180 "upload after it came back" stored "$dir/run/before"
shown kubectl -n profiling logs daemonset/fleet-ebpfprof-agent --tail 8

say "The node is drained: the job goes, the agent, which is a DaemonSet's, stays. Then the node is used again, and the job" \
	"is found again."
pids=$(job "j['pids']")
shown kubectl drain node1 --ignore-daemonsets --delete-emptydir-data --timeout=120s
shown kubectl get pods -A
shown kubectl uncordon node1
until_true 180 "job that the agent has found after the drain" found_again "$pids"

say "Python stacks of users other than root need a fourth capability, DAC_READ_SEARCH (value otherUsers): the pod" \
	"now runs as user 1000."
pids=$(job "j['pids']")
at # the bucket's pod has moved, and a cluster without DNS has no name for it
shown "$helm" upgrade fleet deploy/helm/ebpfprof-agent --namespace profiling --reuse-values --set otherUsers=true \
	--set "config.store=$store" --hide-notes --wait --timeout 3m
kubectl -n ml patch statefulset train -p '{"spec": {"template": {"spec": {"securityContext": {"runAsUser": 1000}}}}}' >/dev/null
until_true 180 "job that the agent has found as another user's" found_again "$pids"
shown kubectl -n ml logs train-0
window

say "The release is removed: nothing of it is left."
shown "$helm" uninstall fleet --namespace profiling --wait --timeout 2m
kubectl -n profiling wait --for=delete pod -l app.kubernetes.io/instance=fleet --timeout=60s >/dev/null
shown kubectl -n profiling get pods,daemonsets,configmaps -l app.kubernetes.io/instance=fleet

mv "$page" docs/cluster.md
chmod 644 docs/cluster.md
echo "written: docs/cluster.md"
