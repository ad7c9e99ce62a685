#!/bin/bash
# One node of Kubernetes on this machine, as root: etcd, the control plane, containerd and the kubelet, with Debian's
# etcd-server, containerd, runc and containernetworking-plugins and the programs in DIR/bin. The control plane listens on
# 127.0.0.1; pods are in 10.88.0.0/16. It has neither DNS nor a proxy for services.
#
#   node.sh up DIR     start it
#   node.sh down DIR   end it and its containers, and remove what it has written, but for DIR/bin and DIR/log
set -euo pipefail

action=${1:-} dir=$(realpath "${2:?usage: node.sh up|down DIR}")
run=$dir/run
bin=$dir/bin

# What a kubelet sets, and what the node leaves as it was.
settings="vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops net.ipv4.ip_forward"

start() { # name, program and arguments
	local name=$1
	shift
	setsid "$@" >"$dir/log/$name" 2>&1 &
	echo $! >"$run/$name.pid"
}

wait_for() { # seconds, what, and a command
	local patience=$1 what=$2
	shift 2
	for _ in $(seq "$patience"); do
		if "$@" >/dev/null 2>&1; then
			return
		fi
		sleep 1
	done
	echo "node.sh: $what is not there after $patience s: see $dir/log" >&2
	exit 1
}

certificate() { # name, subject
	openssl req -newkey rsa:2048 -nodes -keyout "pki/$1.key" -out "pki/$1.csr" -subj "$2" 2>/dev/null
	openssl x509 -req -in "pki/$1.csr" -CA pki/ca.crt -CAkey pki/ca.key -CAcreateserial -out "pki/$1.crt" -days 2 \
		-extfile <(echo "subjectAltName=IP:127.0.0.1,IP:10.0.0.1,DNS:localhost,DNS:kubernetes,DNS:node1") 2>/dev/null
}

kubeconfig() { # name
	cat >"$1.conf" <<-END
		apiVersion: v1
		kind: Config
		clusters: [{name: here, cluster: {server: "https://127.0.0.1:6443", certificate-authority: $run/pki/ca.crt}}]
		users: [{name: $1, user: {client-certificate: $run/pki/$1.crt, client-key: $run/pki/$1.key}}]
		contexts: [{name: here, context: {cluster: here, user: $1}}]
		current-context: here
	END
}

secrets() {
	openssl req -x509 -newkey rsa:2048 -nodes -keyout pki/ca.key -out pki/ca.crt -subj /CN=ca -days 2 2>/dev/null
	certificate api /CN=kube-apiserver
	certificate admin /O=system:masters/CN=admin
	certificate node /O=system:nodes/CN=system:node:node1
	openssl genrsa -out pki/accounts.key 2048 2>/dev/null
	openssl rsa -in pki/accounts.key -pubout -out pki/accounts.pub 2>/dev/null
	kubeconfig admin
	kubeconfig node
}

control_plane() {
	start etcd etcd --data-dir etcd --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
		--listen-peer-urls http://127.0.0.1:2380
	start apiserver "$bin/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --bind-address=127.0.0.1 \
		--advertise-address=127.0.0.1 --endpoint-reconciler-type=none --secure-port=6443 --service-cluster-ip-range=10.0.0.0/24 \
		--tls-cert-file=pki/api.crt --tls-private-key-file=pki/api.key --client-ca-file=pki/ca.crt \
		--kubelet-client-certificate=pki/admin.crt --kubelet-client-key=pki/admin.key \
		--kubelet-preferred-address-types=InternalIP --authorization-mode=Node,RBAC --service-account-key-file=pki/accounts.pub \
		--service-account-signing-key-file=pki/accounts.key --service-account-issuer=https://kubernetes.default.svc
	wait_for 120 "the API server" "$bin/kubectl" --kubeconfig admin.conf get --raw=/readyz
	start controllers "$bin/kube-controller-manager" --kubeconfig=admin.conf --leader-elect=false \
		--service-account-private-key-file=pki/accounts.key --root-ca-file=pki/ca.crt
	start scheduler "$bin/kube-scheduler" --kubeconfig=admin.conf --leader-elect=false
}

containers() {
	cat >containerd.toml <<-END
		version = 2
		root = "$run/containerd"
		state = "$run/containerd-state"
		[grpc]
		address = "$run/containerd.sock"
		[plugins."io.containerd.grpc.v1.cri"]
		sandbox_image = "localhost/torch:1"
		restrict_oom_score_adj = true # without CAP_SYS_RESOURCE
		[plugins."io.containerd.grpc.v1.cri".cni]
		bin_dir = "/usr/lib/cni"
		conf_dir = "$run/cni"
	END
	cat >cni/10.conflist <<-END
		{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipMasq": false,
		  "ipam": {"type": "host-local", "subnet": "10.88.0.0/16", "dataDir": "$run/addresses"}}, {"type": "loopback"}]}
	END
	start containerd containerd -c containerd.toml
	wait_for 60 containerd ctr -a "$run/containerd.sock" version
}

kubelet() {
	cat >kubelet.yaml <<-END
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $run/pki/ca.crt}}
		authorization: {mode: AlwaysAllow}
		cgroupDriver: cgroupfs
		enforceNodeAllocatable: []
		failSwapOn: false
		makeIPTablesUtilChains: false
		containerRuntimeEndpoint: unix://$run/containerd.sock
		evictionHard: {memory.available: "100Mi", nodefs.available: "100Mi", imagefs.available: "100Mi"}
		imageGCHighThresholdPercent: 100
		imageGCLowThresholdPercent: 99
	END
	start kubelet "$bin/kubelet" --config=kubelet.yaml --kubeconfig=node.conf --hostname-override=node1 \
		--root-dir="$run/kubelet" --cert-dir="$run/pki/kubelet"
	# shellcheck disable=SC2016 # it is for the inner shell
	wait_for 120 "the node" bash -c '"$0" --kubeconfig admin.conf get node node1 | grep -q " Ready"' "$bin/kubectl"
}

up() {
	mkdir -p "$run"/{pki,cni} "$dir/log"
	cd "$run"
	# shellcheck disable=SC2086 # they are several
	sysctl $settings >sysctl.conf 2>/dev/null
	for logs in pods containers; do
		[ -e "/var/log/$logs" ] || touch "made-$logs"
	done
	secrets
	control_plane
	containers
	kubelet
}

end() { # names of what was started
	local name pid
	for name in "$@"; do
		pid=$(cat "$run/$name.pid" 2>/dev/null) || continue
		# The number may be another process's by now.
		[ "$(readlink "/proc/$pid/cwd")" = "$run" ] || continue
		kill "$pid" 2>/dev/null || continue
		for _ in $(seq 50); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.2
		done
	done
}

down() {
	end kubelet scheduler controllers apiserver
	if [ -S "$run/containerd.sock" ]; then
		for task in $(ctr -a "$run/containerd.sock" -n k8s.io tasks ls -q 2>/dev/null); do
			ctr -a "$run/containerd.sock" -n k8s.io tasks rm -f "$task" >/dev/null 2>&1 || true
		done
		for container in $(ctr -a "$run/containerd.sock" -n k8s.io containers ls -q 2>/dev/null); do
			ctr -a "$run/containerd.sock" -n k8s.io containers rm "$container" >/dev/null 2>&1 || true
		done
	fi
	end containerd etcd
	awk -v "below=$run/" 'index($2, below) == 1 { print $2 }' /proc/mounts | sort -r | while read -r mounted; do
		umount -l "$mounted" || true
	done
	find /sys/fs/cgroup -depth -type d -path '*/kubepods*' -exec rmdir {} + 2>/dev/null || true
	for logs in pods containers; do
		[ ! -e "$run/made-$logs" ] || rm -rf "/var/log/$logs"
	done
	[ ! -s "$run/sysctl.conf" ] || sysctl -q -p "$run/sysctl.conf" || true
	rm -rf "$run"
}

case $action in
up | down) $action ;;
*)
	echo "usage: node.sh up|down DIR" >&2
	exit 2
	;;
esac
