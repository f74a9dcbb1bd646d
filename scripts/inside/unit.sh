#!/usr/bin/env bash
# What systemd does with the agent's unit and with what the agent's tasks are in. Run
# by scripts/inside.sh unit, in a machine of its own whose first process is systemd:
# a job runs, its groups lie where they should and bound it, and it outlives all that
# happens to the unit, with its groups and bounds.
set -euo pipefail
cd "$(dirname "$0")/../.."
source scripts/hosts.sh # wait_for
HOSTS_NETNS=false

nl() { /usr/local/bin/nomadlike "$@"; }
step() { printf '%s  %s\n' "$(date +%T)" "$*"; }
# equal WHAT GOT WANTED
equal() { [[ "$2" == "$3" ]] || { echo "unit: $1: $2, wanted $3" >&2; return 1; }; }
group() { cut -d: -f3- "/proc/$1/cgroup"; }
agent() { systemctl show -p MainPID --value nomadlike; }
task() { pgrep -fx 'sleep 4711'; }
state_of() { nl job inspect -t '{{.State}}' "$1"; }
attempt_of() { nl job inspect -t '{{.Attempt}}' "$1"; }
answers() { nl node status -json | grep -q '"status": "ready"'; }

# holds WHEN: the job runs as it did, its one process and its groups are the same, and
# they bound it; the node is ready, and something else can be run beside the task.
holds() {
  step "$1: the task goes on, bounded"
  wait_for 30 "a ready node after $1" answers
  equal "task after $1" "$(task)" "$pid"
  equal "group of the task after $1" "$(group "$pid")" "$home"
  equal "state after $1" "$(state_of sleeper) in attempt $(attempt_of sleeper)" "running in attempt 1"
  bounded "$1"
  beside() { equal "a command beside the task" "$(nl job exec sleeper -- cat /proc/self/cgroup | cut -d: -f3- | xargs basename)" "$(basename "$home")"; }
  wait_for 30 "a command beside the task after $1" beside
}

# bounded WHEN: the task's group has its bounds.
bounded() {
  local dir=/sys/fs/cgroup$home
  [[ -e "$dir/memory.max" ]] || {
    echo "unit: no bound of memory after $1; controllers of the group, of those above it, and what these give on:" >&2
    head -v "$dir"/cgroup.controllers /sys/fs/cgroup{/nomadlike,}/cgroup.{controllers,subtree_control} >&2
    return 1
  }
  equal "memory bound after $1" "$(cat "$dir/memory.max")" $((64 << 20))
  equal "processor bound after $1" "$(cat "$dir/cpu.max")" "50000 100000"
  [[ "$(cat "$dir/pids.max")" != max ]] || { echo "unit: no bound of processes after $1" >&2; return 1; }
}

step "the unit starts"
install -m 755 bin/nomadlike /usr/local/bin/nomadlike
cp scripts/nomadlike.service /etc/systemd/system/
mkdir -p /etc/nomadlike.d
cat >/etc/nomadlike.d/agent.hcl <<'HCL'
name      = "unit"
bind      = "127.0.0.1"
advertise = "127.0.0.1"
server {
  enabled = true
}
client {
  enabled = true
}
HCL
systemctl daemon-reload
systemctl enable --quiet --now nomadlike
export NOMADLIKE_CONFIG_DIR=/root/cli NOMADLIKE_ADDR=https://127.0.0.1:4646 NOMADLIKE_CACERT=/var/lib/nomadlike/identity/ca.pem
wait_for 30 "a leader" nl token bootstrap -setup-file /var/lib/nomadlike/setup-secret
wait_for 30 "a ready node" answers
equal "group of the agent" "$(group "$(agent)")" /system.slice/nomadlike.service

step "a job runs"
cat >/tmp/sleeper.hcl <<'HCL'
job "sleeper" {
  resources {
    cpu    = 0.5
    memory = "64MiB"
  }
  task {
    command = "sleep 4711"
  }
}
HCL
nl job run -detach /tmp/sleeper.hcl
wait_for 30 "the task" task
pid=$(task)
home=$(group "$pid")
[[ "$home" == /nomadlike/* ]] || { echo "unit: the task's group is $home" >&2; exit 1; }
equal "times that the kernel spares the task" "$(cat "/proc/$pid/oom_score_adj")" 0
holds "the start"

# systemd writes anew which controllers its groups have.
systemctl daemon-reload
holds "daemon-reload"
cat >/etc/systemd/system/weighed.service <<'UNIT'
[Service]
ExecStart=/bin/sleep 600
CPUWeight=20
MemoryMax=64M
IOWeight=20
AllowedCPUs=0
UNIT
systemctl daemon-reload
systemctl start weighed
holds "another unit with bounds starts"
systemctl stop weighed
rm /etc/systemd/system/weighed.service
systemctl daemon-reload
holds "that unit is gone"
systemctl set-property --runtime system.slice CPUWeight=50 MemoryMax=4G
holds "bounds of system.slice"

before=$(agent)
systemctl restart nomadlike
[[ "$(agent)" != "$before" ]]
holds "systemctl restart"
systemctl reload nomadlike
holds "systemctl reload"
before=$(agent)
kill -9 "$before"
restarted() { [[ "$(agent)" != "$before" && "$(systemctl is-active nomadlike)" == active ]]; }
wait_for 30 "an agent that systemd started again" restarted
holds "a killed agent"
systemctl stop nomadlike
equal "the task while its agent is away" "$(task)" "$pid"
bounded "systemctl stop"
systemctl daemon-reload
systemctl start nomadlike
holds "systemctl stop and start"
systemctl daemon-reexec
holds "daemon-reexec"

step "a task that takes more memory than it has"
cat >/tmp/eater.hcl <<'HCL'
job "eater" {
  resources {
    cpu    = 0.5
    memory = "64MiB"
  }
  task {
    command = "/usr/bin/python3 -c 'b = bytearray(256 << 20)'"
  }
  restart {
    max_restarts = 0
  }
}
HCL
nl job run -wait /tmp/eater.hcl && { echo "unit: it was let" >&2; exit 1; }
nl job history eater | tee /tmp/eater.out
grep -qi 'memory' /tmp/eater.out

step "the end: nothing is left"
nl job stop -wait sleeper
gone() { ! task && [[ -z "$(find /sys/fs/cgroup/nomadlike -mindepth 1 -type d)" ]]; }
wait_for 30 "no groups of tasks" gone
systemctl stop nomadlike
alone() { [[ ! -e /sys/fs/cgroup/system.slice/nomadlike.service/cgroup.procs || -z "$(cat /sys/fs/cgroup/system.slice/nomadlike.service/cgroup.procs)" ]]; }
wait_for 10 "an empty group of the service" alone
equal "restarts by systemd" "$(systemctl show -p NRestarts --value nomadlike)" 0
step "all as it should be"
