#!/usr/bin/env bash
# Hosts for demonstrations, tests and measurements: as root each is a network
# namespace with its own address on one bridge; otherwise all share loopback
# and differ in ports. Sourced by demo.sh, e2e.sh and bench.sh.
#
#   hosts_up DIR NAME...      make the hosts; DIR keeps their data, and DIR/shared is a
#                             disk that all of them have and every user may write to
#   share FILE...             copy files and directories to that disk
#   host_add NAME / host_gone NAME   one more, and its end
#   host_addr NAME            its IP address
#   host_run NAME COMMAND...  run a command there
#   host_start NAME COMMAND...  becomes it: for "host_start … &", whose $! is the command itself
#   agent_start NAME FLAGS... start an agent there, log in DIR/NAME/agent.log
#                             and, where there is one, the configuration DIR/NAME/more.hcl
#   agent_pid NAME            its process id
#   host_kill NAME            the machine dies: every process there, at once
#   host_cut NAME / host_mend NAME   cut it off the network / put it back
#   hosts_down                end everything that was started
set -euo pipefail

NOMADLIKE=${NOMADLIKE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/bin/nomadlike}
HOSTS_PREFIX=nl$$
HOSTS_NET=${HOSTS_NET:-10.87.$((RANDOM % 200 + 1))}
declare -A HOST_INDEX=()
HOSTS_DIR=
HOSTS_NETNS=false

# scratch_dir NAME: a new directory for the data of many agents on one machine.
# In memory where that can hold programs: a dozen agents that fsync to the one
# disk which a build is using would measure that disk and nothing else.
scratch_dir() {
  local dir
  dir=$(mktemp -d "/dev/shm/nomadlike-$1.XXXXXX" 2>/dev/null) || dir=$(mktemp -d "/tmp/nomadlike-$1.XXXXXX")
  cp /bin/true "$dir/try" && "$dir/try" 2>/dev/null || { rm -rf "$dir"; dir=$(mktemp -d "/tmp/nomadlike-$1.XXXXXX"); }
  rm -f "$dir/try"
  chmod 755 "$dir"
  echo "$dir"
}

netns_usable() {
  ((EUID == 0)) && command -v ip >/dev/null && ip netns add "$HOSTS_PREFIX-try" 2>/dev/null && ip netns del "$HOSTS_PREFIX-try"
}

hosts_up() {
  HOSTS_DIR=$1
  shift
  mkdir -p "$HOSTS_DIR"
  mkdir -p -m 1777 "$HOSTS_DIR/shared"
  trap hosts_down EXIT
  if [[ "${HOSTS_LOOPBACK:-}" != 1 ]] && netns_usable; then
    HOSTS_NETNS=true
    ip link add "$HOSTS_PREFIX" type bridge
    ip addr add "$HOSTS_NET.254/24" dev "$HOSTS_PREFIX"
    ip link set "$HOSTS_PREFIX" up
    if iptables -S DOCKER-USER >/dev/null 2>&1; then # Docker drops bridged traffic unless told
      iptables -I DOCKER-USER -i "$HOSTS_PREFIX" -o "$HOSTS_PREFIX" -j ACCEPT
    fi
  fi
  local name
  for name in "$@"; do host_add "$name"; done
}

# host_add NAME: one more host beside those of hosts_up.
host_add() {
  local name=$1 index=$((${#HOST_INDEX[@]} + 1))
  HOST_INDEX[$name]=$index
  mkdir -p "$HOSTS_DIR/$name"
  $HOSTS_NETNS || return 0
  ip netns add "$HOSTS_PREFIX-$name"
  ip link add "${HOSTS_PREFIX}v$index" type veth peer name eth0 netns "$HOSTS_PREFIX-$name"
  ip link set "${HOSTS_PREFIX}v$index" master "$HOSTS_PREFIX" up
  ip -n "$HOSTS_PREFIX-$name" addr add "$HOSTS_NET.$index/24" dev eth0
  ip -n "$HOSTS_PREFIX-$name" link set eth0 up
  ip -n "$HOSTS_PREFIX-$name" link set lo up
}

# host_gone NAME: every process of a host ends, and so does its network.
host_gone() {
  local pids
  pids=$(host_pids "$1" 2>/dev/null || true)
  [[ -z "$pids" ]] || kill -9 $pids 2>/dev/null || true
  if $HOSTS_NETNS; then ip netns del "$HOSTS_PREFIX-$1" 2>/dev/null || true; fi
}

# share FILE...: to the disk of all hosts, for tasks that are not root and may not
# pass through the directories above a checkout.
share() {
  cp -r "$@" "$HOSTS_DIR/shared/"
  chmod -R a+rX "$HOSTS_DIR/shared"
}

# shared_dir NAME: a new directory on that disk, which every user may write to.
shared_dir() {
  mkdir -p -m 1777 "$HOSTS_DIR/shared/$1"
  echo "$HOSTS_DIR/shared/$1"
}

host_addr() { if $HOSTS_NETNS; then echo "$HOSTS_NET.${HOST_INDEX[$1]}"; else echo 127.0.0.1; fi; }
host_port() { if $HOSTS_NETNS; then echo 4646; else echo $((24600 + HOST_INDEX[$1] * 10)); fi; }
host_gossip() { if $HOSTS_NETNS; then echo 4648; else echo $((24600 + HOST_INDEX[$1] * 10 + 2)); fi; }

host_run() {
  local name=$1
  shift
  if $HOSTS_NETNS; then ip netns exec "$HOSTS_PREFIX-$name" "$@"; else "$@"; fi
}

host_start() {
  local name=$1
  shift
  if $HOSTS_NETNS; then exec ip netns exec "$HOSTS_PREFIX-$name" "$@"; else exec "$@"; fi
}

agent_start() {
  local name=$1 range=()
  shift
  if ! $HOSTS_NETNS; then # one machine: every client needs job ports of its own
    local low=$((26000 + HOST_INDEX[$name] * 200))
    printf 'client {\n  port_min = %d\n  port_max = %d\n}\n' "$low" $((low + 199)) >"$HOSTS_DIR/$name/ports.hcl"
    range=(-config "$HOSTS_DIR/$name/ports.hcl")
  fi
  if [[ " $* " == *" -client "* ]]; then
    printf 'client {\n  exec {\n    writable = ["%s"]\n  }\n}\n' "$HOSTS_DIR/shared" >"$HOSTS_DIR/$name/shared.hcl"
    range+=(-config "$HOSTS_DIR/$name/shared.hcl")
  fi
  [[ ! -f "$HOSTS_DIR/$name/more.hcl" ]] || range+=(-config "$HOSTS_DIR/$name/more.hcl")
  run_agent "$name" "${range[@]}" "$@" >>"$HOSTS_DIR/$name/agent.log" 2>&1 &
  echo $! >"$HOSTS_DIR/$name/agent.pid"
  disown # its end is no news for this shell
}

# run_agent becomes the agent, so that the background job's pid is the agent's.
# Without a working directory or environment of ours: tasks must not inherit them.
run_agent() {
  local name=$1 where=()
  shift
  if $HOSTS_NETNS; then where=(ip netns exec "$HOSTS_PREFIX-$name"); fi
  # `ip netns exec` mounts a /sys of its own, without the groups of the machine.
  if $HOSTS_NETNS && [[ "${HOSTS_CGROUPS:-}" == 1 ]]; then where=(nsenter --net="/run/netns/$HOSTS_PREFIX-$name"); fi
  cd /
  exec "${where[@]}" env -i PATH="$PATH" HOME="$HOSTS_DIR/$name" NOMADLIKE_CONFIG_DIR="$HOSTS_DIR/$name/cli" \
    "$NOMADLIKE" agent -name "$name" -data-dir "$HOSTS_DIR/$name/data" -bind "$(host_addr "$name")" \
    -advertise "$(host_addr "$name")" -port "$(host_port "$name")" -gossip-port "$(host_gossip "$name")" "$@"
}

agent_pid() { cat "$HOSTS_DIR/$1/agent.pid"; }

# Processes of a host: those of its namespace, or the agent with everything
# whose environment points into the host's data directory.
host_pids() {
  if $HOSTS_NETNS; then
    ip netns pids "$HOSTS_PREFIX-$1" 2>/dev/null || true
    return
  fi
  agent_pid "$1"
  local proc
  for proc in /proc/[0-9]*; do
    if tr '\0' '\n' 2>/dev/null <"$proc/environ" | grep -q "=$HOSTS_DIR/$1/data/"; then echo "${proc#/proc/}"; fi
  done 2>/dev/null
  for proc in /proc/[0-9]*; do
    if tr '\0' ' ' 2>/dev/null <"$proc/cmdline" | grep -q "$HOSTS_DIR/$1/data/"; then echo "${proc#/proc/}"; fi
  done 2>/dev/null
}

host_kill() {
  local pids
  if $HOSTS_NETNS; then ip link set "${HOSTS_PREFIX}v${HOST_INDEX[$1]}" down; fi
  pids=$(host_pids "$1")
  [[ -z "$pids" ]] || kill -9 $pids 2>/dev/null || true
}

host_cut() { ip link set "${HOSTS_PREFIX}v${HOST_INDEX[$1]}" down; }
host_mend() { ip link set "${HOSTS_PREFIX}v${HOST_INDEX[$1]}" up; }

hosts_down() {
  local name pids round
  trap - EXIT
  for round in 1 2 3; do
    for name in "${!HOST_INDEX[@]}"; do
      pids=$(host_pids "$name" 2>/dev/null || true)
      [[ -z "$pids" ]] || kill -9 $pids 2>/dev/null || true
    done
  done
  $HOSTS_NETNS || return 0
  for name in "${!HOST_INDEX[@]}"; do ip netns del "$HOSTS_PREFIX-$name" 2>/dev/null || true; done
  if iptables -S DOCKER-USER >/dev/null 2>&1; then
    iptables -D DOCKER-USER -i "$HOSTS_PREFIX" -o "$HOSTS_PREFIX" -j ACCEPT 2>/dev/null || true
  fi
  ip link del "$HOSTS_PREFIX" 2>/dev/null || true
}

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
  local limit=$1 what=$2 start=$SECONDS
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS - start >= limit)); then
      echo "waited $limit s for: $what" >&2
      return 1
    fi
    sleep 0.1
  done
}

# cluster_up SERVERS CLIENTS: agents s1..sN and c1..cM with one CA; the CLI of
# this shell is signed in afterwards.
cluster_up() {
  local servers=$1 clients=$2 i first
  first=$HOSTS_DIR/s1/data
  agent_start s1 -server -bootstrap-expect "$servers"
  wait_for 30 "join lines of the first server" test -s "$first/join-client"
  for ((i = 2; i <= servers; i++)); do agent_start "s$i" -server -bootstrap-expect "$servers" -join-token-file "$first/join-server"; done
  for ((i = 1; i <= clients; i++)); do agent_start "c$i" -client -join-token-file "$first/join-client"; done
  export NOMADLIKE_CONFIG_DIR=$HOSTS_DIR/cli NOMADLIKE_CACERT=$first/identity/ca.pem
  NOMADLIKE_ADDR=$(for ((i = 1; i <= servers; i++)); do printf '%shttps://%s:%s' "$([[ $i -gt 1 ]] && echo ,)" "$(host_addr "s$i")" "$(host_port "s$i")"; done)
  export NOMADLIKE_ADDR
  wait_for 30 "a leader" "$NOMADLIKE" token bootstrap -setup-file "$first/setup-secret"
  wait_for 30 "$clients ready clients" clients_ready "$clients"
}

clients_ready() { [[ $("$NOMADLIKE" node status -json | grep -c '"status": "ready"') -ge $1 ]]; }
