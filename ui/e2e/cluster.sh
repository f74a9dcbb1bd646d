#!/usr/bin/env bash
# One server and three clients, hosts of their own where that is possible, for
# cluster.mjs: prints the address and a user's token, and ends when its input
# does.
set -euo pipefail
cd "$(dirname "$0")/../.."
source scripts/hosts.sh
dir=$(scratch_dir page)
hosts_up "$dir" s1 c1 c2 c3
trap 'hosts_down; rm -rf "$dir"' EXIT
cluster_up 1 3
token=$("$NOMADLIKE" token create -role user -user ann -project default | grep -oE 'nl_[a-z]+_[a-z2-7]+')
printf 'ready https://%s:%s %s\n' "$(host_addr s1)" "$(host_port s1)" "$token"
cat >/dev/null
