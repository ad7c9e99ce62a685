#!/bin/sh
# Builds helm and kubeconform from the Go proxy: what the tests of deploy/helm render and check it with.
#
#   helm.sh           build them if they are missing
#   helm.sh --check   exit status 0 if they are there, 1 if not
#   helm.sh --path    print where helm is, or would be
#
# Their versions are pinned, and checked as Go checks modules (go help module-auth).
set -eu

helm=v3.19.5
kubeconform=v0.8.0
bin=${EBPFPROF_CACHE:-$HOME/.cache/ebpfprof}/helm

case ${1-} in
--check)
	[ -x "$bin/$helm/helm" ] && [ -x "$bin/$helm/kubeconform" ]
	exit
	;;
--path)
	echo "$bin/$helm/helm"
	exit
	;;
'') ;;
*)
	echo "usage: helm.sh [--check | --path]" >&2
	exit 2
	;;
esac

mkdir -p "$bin"

# Two test runs may start at once; the second finds it done.
exec 9>"$bin.lock"
flock 9
if "$0" --check; then
	exit 0
fi
new=$(mktemp -d "$bin/new-XXXXXX")
trap 'rm -rf "$new"' EXIT
cd /
export CGO_ENABLED=0 GOFLAGS='-trimpath -ldflags=-s' GOBIN="$new"
go install "helm.sh/helm/v3/cmd/helm@$helm"
go install "github.com/yannh/kubeconform/cmd/kubeconform@$kubeconform"
mkdir -p "$bin/$helm"
mv "$new/helm" "$new/kubeconform" "$bin/$helm/"
