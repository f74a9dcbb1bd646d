#!/usr/bin/env bash
# Attacks a cluster of the real binary in network namespaces and looks whether
# what was promised holds; see scripts/nemesis. Needs root. Arguments go to the
# program: -seed, -minutes, -only FAULTS, -plant NAME, -list.
set -euo pipefail
cd "$(dirname "$0")/.."
((EUID == 0)) || { echo "nemesis: network namespaces need root" >&2; exit 1; }
scripts/packages.sh iproute2 iptables procps strace
[[ -e plugins/exec/embedded/task-supervisor-linux-$(go env GOARCH).gz ]] || make --no-print-directory embedded
program=$(mktemp -d /tmp/nemesis-program-XXXXXX)
trap 'rm -rf "$program"' EXIT
go build -o "$program/nemesis" ./scripts/nemesis
"$program/nemesis" "$@"
