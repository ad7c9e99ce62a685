#!/bin/sh
# Installs what the kernel matrix needs, only what is missing: qemu, and with --long
# Debian's compilers for arm64.
set -eu

packages='dpkg qemu-system-arm qemu-system-x86 seabios'
[ "${1:-}" != --long ] || packages="$packages g++-aarch64-linux-gnu gcc-aarch64-linux-gnu libc6-dev-arm64-cross"

missing=
for package in $packages; do
	status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
	[ "$status" = 'install ok installed' ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
apt-get -q update
# shellcheck disable=SC2086 # a list of names
DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $missing
