#!/usr/bin/env bash
# The red team: a cluster of the real binary in network namespaces, three servers
# and three nodes under a light load, attacked by somebody with nothing, by a
# plain user and by whoever owns one node (see scripts/attack), and flooded from
# one address. Prints a line for each attack, "held" or "BROKEN", and ends
# non-zero when one is broken. Needs root. An argument is a pattern: only scripts
# and floods whose names match it are run.
set -euo pipefail
cd "$(dirname "$0")/.."
((EUID == 0)) || { echo "attack: network namespaces need root" >&2; exit 1; }
source scripts/hosts.sh
[[ -x $NOMADLIKE ]] || make --no-print-directory build
only=${1:-.}
dir=$(scratch_dir attack)
attack=$dir/attack
go build -o "$attack" ./scripts/attack
broken=0 load=
finish() {
  [[ -z "$load" ]] || kill "$load" 2>/dev/null || true
  hosts_down
  if ((broken == 0)); then rm -rf "$dir"; else echo "logs are in $dir"; fi
}

memory_max=300 # MiB that an agent may have at any moment of a flood

HOSTS_CGROUPS=1 # tasks are bounded as on a machine of their own
hosts_up "$dir" s1 s2 s3 c1 c2 c3 x m
for name in c1 c2 c3; do # for the lines that fill a node
  printf 'client {\n  task {\n    disk_max = "64MiB"\n    files_max = 2000\n    logs_max = "4MiB"\n  }\n  exec { pids_max = 512 }\n}\n' >"$dir/$name/more.hcl"
done
trap finish EXIT
cp_setup() { until cp "$dir/s1/data/setup-secret" "$dir/setup" 2>/dev/null; do sleep 0.05; done; }
cp_setup & # it is gone once it was used
cluster_up 3 3
wait -n 2>/dev/null || true
token() { timeout 60 "$NOMADLIKE" token create -name "$1" "${@:2}" | grep -oE 'nl_[a-z]+_[a-z2-7]+' >"$dir/$1"; }
token admin -role admin
token user -role user -user mallory -project plain
token other -role user -user ann -project plain
list() { local port=$1 name out=; shift; for name in "$@"; do out+=,$(host_addr "$name"):$port; done; echo "${out#,}"; }
common=(-servers "$(list 4646 s1 s2 s3)" -gossip "$(list 4648 s1 s2 s3 c1 c2 c3)" -ca "$dir/s1/data/identity/ca.pem" -admin "$dir/admin" -setup "$dir/setup"
  -server "$dir/s1/data" -node "$dir/c1/data" -other "$dir/c2/data" -shared "$dir/shared")

(
  export NOMADLIKE_TOKEN
  NOMADLIKE_TOKEN=$(cat "$dir/other")
  i=0
  while sleep 1; do
    printf 'job "load-%d" {\n  project = "plain"\n  resources {\n    cpu = 0.1\n    memory = "16MiB"\n  }\n  task { command = "sleep 2" }\n}\n' $((i += 1)) >"$dir/load.hcl"
    timeout 30 "$NOMADLIKE" job run -detach "$dir/load.hcl" >>"$dir/load.log" 2>&1 || true
  done
) &
load=$!

run() { # NAME COMMAND...: one script, whose lines are its verdict
  local name=$1
  shift
  [[ "$name" =~ $only ]] || return 0
  echo "== $name"
  "$@" || broken=$((broken + 1))
}

# memory_reset and memory_peak: the most that the agents have had in between.
memory_reset() { local name; for name in s1 s2 s3 c1 c2 c3; do echo 5 >"/proc/$(agent_pid "$name")/clear_refs"; done; }
memory_peak() { memory_most VmHWM; }
memory_most() { # VmHWM or VmRSS: the agent that has most of it
  local name kb
  for name in s1 s2 s3 c1 c2 c3; do
    kb=$(awk -v what="^$1" '$0 ~ what {print $2}' "/proc/$(agent_pid "$name")/status")
    echo "$((kb / 1024)) $name"
  done | sort -rn | head -1
}

flood() { # NAME HOST KIND COUNT TARGETS...: meanwhile somebody else submits
  local name=$1 host=$2 kind=$3 count=$4 flooder status=0 peak before
  shift 4
  memory_reset
  before=$(memory_most VmRSS)
  host_start "$host" "$attack" -script flood -kind "$kind" -count "$count" -servers "$*" -gossip "$*" -for 200s >"$dir/flood-$kind.out" 2>&1 &
  flooder=$!
  if ! wait_for 50 "the flood $kind" grep -q '^ready' "$dir/flood-$kind.out"; then
    echo "BROKEN  $name: not tried, the flood did not begin: $(tail -1 "$dir/flood-$kind.out")"
    kill "$flooder" 2>/dev/null || true
    return 1
  fi
  echo "        $kind: $(head -1 "$dir/flood-$kind.out")"
  "$attack" -script judge "${common[@]}" -token "$dir/other" -for 10s || status=1
  if [[ "$kind" == idle ]]; then again c1 || status=1; fi
  peak=$(memory_peak)
  if ((${peak% *} < memory_max)); then
    echo "held    $name: at most ${peak% *} MiB, by ${peak#* }, ${before% *} by ${before#* } before it [the flood opened its connections, see above]"
  else
    echo "BROKEN  $name: ${peak% *} MiB of memory, by ${peak#* }, ${before% *} by ${before#* } before it"
    status=1
  fi
  kill "$flooder" 2>/dev/null || true
  wait "$flooder" 2>/dev/null || true
  if pgrep -f "^$attack -script flood -kind $kind " >/dev/null; then
    echo "BROKEN  $name: the flood goes on, and the next lines are not what they say"
    status=1
  fi
  return $status
}

gone() { ! kill -0 "$1" 2>/dev/null; }

# again NODE: its agent starts anew during the flood, and registers.
again() {
  local pid before
  pid=$(agent_pid "$1")
  before=$(incarnation "$1")
  [[ -n "$before" ]] || { echo "BROKEN  8 a node registers: not tried, $1 is not there"; return 1; }
  kill -9 "$pid"
  wait_for 20 "the end of $1's agent" gone "$pid"
  agent_start "$1" -client
  if wait_for 40 "$1 to register" registered "$1" "$before"; then
    echo "held    8 a node registers while its address is full [its agent was killed; its incarnation, $before, is another]"
  else
    echo "BROKEN  8 a node registers while its address is full"
    return 1
  fi
}
incarnation() { timeout 20 "$NOMADLIKE" node status -json | awk -v n="\"$1\"" '/"name":/ {found = $2 ~ n} /"incarnation":/ {last = $2 + 0} /"status":/ {if (found && last != "") {print last; exit}}'; }
registered() { local now; now=$(incarnation "$1"); [[ -n "$now" && "$now" != "$2" ]]; }

# both: a cluster of one machine, server and node, with a user's job on it.
both() {
  local data=$dir/m/data status=0 reached=0
  agent_start m -server -client -bootstrap-expect 1
  (
    export NOMADLIKE_CONFIG_DIR=$dir/m/cli NOMADLIKE_CACERT=$data/identity/ca.pem NOMADLIKE_ADDR
    NOMADLIKE_ADDR=https://$(host_addr m):4646
    wait_for 30 "a leader" "$NOMADLIKE" token bootstrap -setup-file "$data/setup-secret"
    wait_for 30 "its node" clients_ready 1
    token admin-m -role admin
    token user-m -role user -user mallory -project plain
  ) || reached=1
  if ((reached == 1)); then echo "BROKEN  6 a task on a server's own machine: not tried, there is no such cluster"; return 1; fi
  host_run x "$attack" -script both -servers "$(host_addr m):4646" -ca "$data/identity/ca.pem" -admin "$dir/admin-m" -token "$dir/user-m" -server "$data" -other "$data" -shared "$dir/shared" || status=1
  kill "$(agent_pid m)" 2>/dev/null || true
  return $status
}

# canary: what is secret is in no log of an agent, and in nothing that servers keep.
canary() {
  local what status=0
  if ! grep -qr "load-1" "$dir"/s1/data 2>/dev/null; then
    echo "BROKEN  6.14 secrets in logs and state: not tried, not even the name of a job is found"
    return 1
  fi
  for what in "$dir/admin" "$dir/user" "$dir/other" "$dir/setup" "$dir/c1/data/identity/gossip.key"; do
    if grep -qrF --exclude-dir=identity -- "$(cat "$what")" "$dir"/s?/agent.log "$dir"/c?/agent.log "$dir"/s?/data "$dir"/c?/data 2>/dev/null; then
      echo "BROKEN  6.14 secrets in logs and state: that of ${what##*/}: $(grep -lrF --exclude-dir=identity -- "$(cat "$what")" "$dir"/s?/agent.log "$dir"/c?/agent.log "$dir"/s?/data "$dir"/c?/data | tr '\n' ' ')"
      status=1
    fi
  done
  ((status == 1)) || echo "held    6.14 secrets in logs and state [the name of a job is found there]"
  return $status
}

run stranger host_run x "$attack" -script stranger "${common[@]}" -bind "$(host_addr x)"
run user host_run x "$attack" -script user "${common[@]}" -token "$dir/user" -bind "$(host_addr x)"
run flood-silent flood "8 1,100 silent connections" x silent 1100 "$(list 4646 s1)"
run flood-heads flood "6.15 1,000 half-sent heads" x heads 1000 "$(list 4646 s1)"
run flood-bodies flood "8 1,000 half-sent bodies" x bodies 1000 "$(list 4646 s1)"
run flood-gossip flood "8 100 keyless gossip streams" x gossip 100 "$(list 4648 s1)"
run flood-idle flood "8 1,024 idle connections from a node's address to its agent and a server" c1 idle 2048 "$(list 4646 c1 s1)"
run both both
run node host_run c1 "$attack" -script node "${common[@]}" -bind "$(host_addr c1)"
run canary canary
if [[ $(grep -c . "$dir/load.log") -gt 0 ]]; then echo "== the load: $(grep -c . "$dir/load.log") submissions"; else echo "BROKEN  there was no load"; broken=1; fi
if ((broken > 0)); then echo "attack: $broken scripts have broken lines"; exit 1; fi
echo "attack: all lines held"
