#!/bin/bash
# Builds Kubernetes' programs for one node from the Go proxy, into DIR/bin, and writes DIR/version: a quarter of an hour on
# two cores, and 4 GB of Go's caches. What they print of their own version is not it.
#
#   kubernetes.sh DIR
#
# Its version is pinned, and checked as Go checks modules (go help module-auth).
set -euo pipefail

version=1.34.2
programs="kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl"
dir=$(realpath -m "${1:?usage: kubernetes.sh DIR}")

there=true
[ "$(cat "$dir/version" 2>/dev/null)" = "$version" ] || there=false
for program in $programs; do
	[ -x "$dir/bin/$program" ] || there=false
done
if $there; then
	exit 0
fi
mkdir -p "$dir/build"
cd "$dir/build"

# Kubernetes requires the modules that it consists of at v0.0.0, which are directories of its repository: each is replaced
# by what was published of it.
printf 'module node\n\ngo 1.24.0\n' >go.mod
definition=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
{
	printf 'module node\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes v%s\n\n' "$version"
	sed -n "s|^[[:space:]]*\(k8s.io/[a-z.-]*\) v0\.0\.0\$|replace \1 => \1 v0.${version#*.}|p" "$definition" | sort -u
} >go.mod
{
	printf '//go:build tools\n\npackage node\n\n'
	for program in $programs; do
		printf 'import _ "k8s.io/kubernetes/cmd/%s"\n' "$program"
	done
} >main.go
go mod tidy
for program in $programs; do
	go build -trimpath -ldflags '-s -w' -o "../bin/$program" "k8s.io/kubernetes/cmd/$program"
done
echo "$version" >../version
rm -r "$dir/build"
