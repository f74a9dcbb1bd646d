#!/usr/bin/env bash
# A new user with nothing but the guides: types the blocks of First cluster and of
# First training on GPUs that name a machine (on=m1), machine by machine, as they
# stand there. Each machine is a network namespace with its own address, host
# name, configuration and data directory; a machine dies while a job runs on it.
# Cards are declared, not real. Needs root and PyTorch (python3-torch).
#
#   scripts/e2e/start.sh [LANGUAGE [PAGE]]    en (the default) or zh; both pages unless told
set -euo pipefail
cd "$(dirname "$0")/../.."
language=${1:-en} only=${2:-}
((EUID == 0)) || { echo "network namespaces need root" >&2; exit 1; }
/usr/bin/python3 -c 'import torch' 2>/dev/null || scripts/packages.sh python3-torch
source scripts/hosts.sh
[[ -x $NOMADLIKE ]] || make --no-print-directory build

dir=$(scratch_dir start)
finish() { local status=$?; hosts_down; if ((status == 0)); then rm -rf "$dir"; else echo "what each machine said is in $dir" >&2; fi; }
hosts_up "$dir" m1 m2 m3 g1
trap finish EXIT
$HOSTS_NETNS || { echo "there are no network namespaces here" >&2; exit 1; }

# What a machine has and a namespace lacks: a service manager, and sudo.
mkdir -p "$dir/bin"
ln -s "$NOMADLIKE" "$dir/bin/nomadlike"
cat >"$dir/bin/systemctl" <<'SERVICE'
#!/bin/sh
cd / && setsid nomadlike agent -config "$MACHINE/etc" -data-dir "$MACHINE/data" >>"$MACHINE/agent.log" 2>&1 &
n=0
until [ -e "$MACHINE/data/join-client" ] || [ -e "$MACHINE/joins" ] || [ $n -ge 300 ]; do sleep 0.1; n=$((n + 1)); done
SERVICE
printf '#!/bin/sh\nexec "$@"\n' >"$dir/bin/sudo"
chmod 755 "$dir/bin/systemctl" "$dir/bin/sudo"

# local_paths HOST: paths and addresses of the page as they are for a host.
local_paths() {
  sed -e "s#/etc/nomadlike\.d#$dir/$1/etc#g" -e "s#/etc/nomadlike\.join#$dir/$1/join#g" -e "s#/var/lib/nomadlike#$dir/$1/data#g" \
    -e "s#/nas#$dir/shared/nas#g" -e "s#10\.0\.0\.#$HOSTS_NET.#g"
}

# machine HOST COMMAND...: a shell on that machine, in its home directory.
machine() {
  local host=$1
  shift
  host_run "$host" env -i PATH="$dir/bin:/usr/sbin:/usr/bin:/sbin:/bin" LANG=C.UTF-8 NOMADLIKE_LANG="$language" HOME="$dir/$host" MACHINE="$dir/$host" EXAMPLES="$PWD/website/examples" \
    unshare --uts sh -c 'hostname "$1"; cd "$HOME"; shift; exec "$@"' sh "$host" "$@"
}

# blocks PAGE: the lines "BLOCK LINE HOSTS FILE" of the page's blocks that name machines,
# each with its text in DIR/blocks/BLOCK.
blocks() {
  mkdir -p "$dir/blocks"
  awk -v dir="$dir/blocks" -v page="$(basename "$1" .md)" '
    /^```/ && open { open = 0; if (out) close(out); out = ""; next }
    /^```/ {
      open = 1; hosts = file = ""
      if (match($0, / on=[a-z0-9,]+/)) hosts = substr($0, RSTART + 4, RLENGTH - 4)
      if (match($0, / file=[^ ]+/)) file = substr($0, RSTART + 6, RLENGTH - 6)
      if (hosts) { out = dir "/" page "-" NR; printf "" >out; print page "-" NR, NR, hosts, file ? file : "-" }
      next
    }
    open && out { print >out }' "$1"
}

# type_page PAGE: does what the page says.
type_page() {
  local block line hosts file host lines
  mapfile -t lines < <(blocks "$1")
  for entry in "${lines[@]}"; do
    read -r block line hosts file <<<"$entry"
    for host in ${hosts//,/ }; do
      if [[ $file != - ]]; then
        local target
        target=$(local_paths "$host" <<<"$file")
        [[ $target == /* ]] || target=$dir/$host/$target
        mkdir -p "$(dirname "$target")"
        local_paths "$host" <"$dir/blocks/$block" >"$target"
        [[ $host != m2 || $file != *agent.hcl ]] || third # the same file, with its own address
        continue
      fi
      before "$block" "$host"
      printf '\n== %s:%s on %s\n' "$1" "$line" "$host"
      local_paths "$host" <"$dir/blocks/$block" >"$dir/$host/block"
      cat "$dir/$host/block"
      echo '--'
      machine "$host" timeout 120 bash -euo pipefail block || { echo "$1:$line fails on $host" >&2; exit 1; }
    done
  done
}

third() {
  mkdir -p "$dir/m3/etc"
  sed -e "s#$HOSTS_NET\.2\"#$HOSTS_NET.3\"#" -e "s#$dir/m2/#$dir/m3/#g" "$dir/m2/etc/agent.hcl" >"$dir/m3/etc/agent.hcl"
}

# before BLOCK HOST: what the page asks for in words between its blocks.
before() {
  case "$(cat "$dir/blocks/$1")" in
  *'systemctl enable'*) # the file that was copied
    [[ $2 == m1 ]] || { cp "$dir/m1/data/join-server" "$dir/$2/join" && chmod 600 "$dir/$2/join" && touch "$dir/$2/joins"; }
    ;;
  *'token bootstrap'*) wait_for 60 "a leader" leads "$2" ;;
  *'run -logs three.hcl'*) wait_for 60 "three nodes" ready 3 ;;
  *'job history two'*) # the machine that dies: not the one at which we sit
    local victim
    victim=$(machine m1 nomadlike job inspect -t '{{range .Allocations}}{{if eq .Status "running"}}{{.NodeName}} {{end}}{{end}}' two | tr ' ' '\n' | grep -v '^m1$' | head -1)
    printf '\n== machine %s dies\n' "$victim"
    host_kill "$victim"
    wait_for 60 "attempt 2" again
    ;;
  esac
}

leads() { grep -q 'registered with server' "$dir/$1/agent.log"; }
ready() { [[ $(machine m1 nomadlike node status -json | grep -c '"status": "ready"') -ge $1 ]]; }
again() { [[ "$(machine m1 nomadlike job inspect -t '{{.Attempt}} {{.State}}' two)" == "2 running" ]]; }

[[ $only == first-gpu ]] || type_page "website/guide/$language/first-cluster.md"
[[ $only != first-cluster ]] || exit 0

# One machine with cards, for the training.
mkdir -p "$dir/g1/etc" "$dir/shared/nas/output/default"
chmod 777 "$dir/shared/nas/output/default"
printf 'advertise = "%s"\nclient {\n  device "nvidia/gpu" {\n    count = 2\n  }\n}\n' "$(host_addr g1)" >"$dir/g1/etc/cards.hcl"
type_page "website/guide/$language/first-gpu.md"
printf '\nEvery block ran as it is written (%s).\n' "$language"
