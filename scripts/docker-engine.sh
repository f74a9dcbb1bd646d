#!/usr/bin/env bash
# A Docker engine of its own for tests, in a directory, beside any other:
#
#   scripts/docker-engine.sh start DIR [dockerd options]   prints its endpoint
#   scripts/docker-engine.sh crash DIR      kills the engine, not its containers
#   scripts/docker-engine.sh stop DIR       stops it as its service would
#   scripts/docker-engine.sh remove DIR     removes containers, engine and DIR
#
# It touches no firewall: dockerd's own rules would cut traffic between other
# network namespaces of this machine. Needs root and dockerd (package docker.io).
set -euo pipefail

act=${1:-} dir=${2:-}
case "$act" in start | crash | stop | remove) ;; *) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;; esac
[[ "$dir" == /* ]] || { echo "docker-engine: DIR must be absolute" >&2; exit 2; }
shift 2
socket=$dir/docker.sock endpoint=unix://$dir/docker.sock
# The client may be newer than the engine's own package.
docker() { command docker -H "$endpoint" "$@"; }

engine_pid() { [[ -s $dir/engine.pid ]] && kill -0 "$(<"$dir/engine.pid")" 2>/dev/null && cat "$dir/engine.pid"; }

# end SIGNAL: signals the engine and waits until it is gone.
end() {
  local pid
  pid=$(engine_pid) || return 0
  kill -"$1" "$pid"
  for _ in $(seq 900); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
  kill -0 "$pid" 2>/dev/null && { echo "docker-engine: engine $pid does not end" >&2; return 1; }
  # A killed engine leaves its containerd, which the next one would not find.
  local containerd=$dir/exec/containerd/containerd.pid
  if [[ -s $containerd ]]; then
    kill -"$1" "$(<"$containerd")" 2>/dev/null || true
    for _ in $(seq 50); do kill -0 "$(<"$containerd")" 2>/dev/null || break; sleep 0.1; done
  fi
  rm -f "$dir/engine.pid"
}

start() {
  command -v dockerd >/dev/null || { echo "docker-engine: dockerd is not installed (package docker.io)" >&2; exit 3; }
  mkdir -p "$dir"
  if ! engine_pid >/dev/null; then
    rm -f "$socket"
    setsid dockerd --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/engine.pid" --host "$endpoint" \
      --iptables=false --ip6tables=false --ip-forward=false --bridge=none \
      --default-address-pool base=10.213.0.0/16,size=24 "$@" </dev/null >>"$dir/engine.log" 2>&1 &
  fi
  for _ in $(seq 300); do
    [[ -S $socket ]] && docker version >/dev/null 2>&1 && { echo "$endpoint"; return; }
    sleep 0.1
  done
  tail -5 "$dir/engine.log" >&2
  echo "docker-engine: no engine within 30 s" >&2
  exit 1
}

remove() {
  if ! engine_pid >/dev/null && [[ -d $dir/data ]]; then start >/dev/null; fi # to end what it left running
  if engine_pid >/dev/null; then
    docker ps -aq | while read -r id; do docker rm -f "$id" >/dev/null 2>&1 || true; done
    docker network prune -f >/dev/null 2>&1 || true
    end TERM
  fi
  # Deepest first: a mount inside another one.
  awk -v d="$dir/" 'index($5, d) == 1 {print $5}' /proc/self/mountinfo | sort -r | while read -r m; do umount -l "$m" || true; done
  rm -rf "$dir"
}

case "$act" in
start) start "$@" ;;
crash) end KILL ;;
stop) end TERM ;;
remove) remove ;;
esac
