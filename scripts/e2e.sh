#!/usr/bin/env bash
# Real hosts in network namespaces, the real binary, real PyTorch and MPI: what
# only a cluster of machines can show. Needs root. Prints one line for each
# scenario and ends with "N passed, N failed". An argument is a pattern: only
# scenarios whose names match it are run.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
((EUID == 0)) || { echo "e2e: network namespaces need root" >&2; exit 1; }
source scripts/hosts.sh
[[ -x $NOMADLIKE ]] || make --no-print-directory build

dir=$(scratch_dir e2e)
passed=0 failed=0 only=${1:-.}
finish() { hosts_down; if ((failed == 0)); then rm -rf "$dir"; else echo "logs are in $dir"; fi; }

nl() { timeout 120 "$NOMADLIKE" "$@"; }
state_of() { nl job inspect -t '{{.State}}' "$1"; }
attempt_of() { nl job inspect -t '{{.Attempt}}' "$1"; }
node_of() { nl job inspect -t '{{range .Allocations}}{{if eq .Status "running"}}{{.NodeName}} {{end}}{{end}}' "$1" | awk '{print $1}'; }
is() { [[ "$("$1" "$2")" == "$3" ]]; }
node_is() { nl node status -json | awk -v n="\"$1\"" -v s="\"$2\"" '/"name":/ {name=$2} /"status":/ && name ~ n && $2 ~ s {found=1} END {exit !found}'; }
sleeper() { # NAME [NODES]: a job that stays
  printf 'job "%s" {\n  nodes = %s\n  resources {\n    cpu = 0.1\n    memory = "16MiB"\n  }\n  distributed "none" {}\n  task { command = "sleep 3600" }\n  stop_grace = "2s"\n}\n' "$1" "${2:-1}" >"$dir/$1.hcl"
  nl job run -detach "$dir/$1.hcl" >/dev/null
  wait_for 20 "$1 running" is state_of "$1" running
}

enters() { [[ "$(nl job exec "$1" echo still here)" == "still here" ]]; }

# sleeps HOST: the pids of the sleepers on a host; fails when there are none.
sleeps() {
  local pid found=1
  for pid in $(host_pids "$1"); do
    if [[ "$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline")" == "sleep 3600 " ]]; then
      echo "$pid"
      found=0
    fi
  done
  return $found
}

scenario() { # NAME FUNCTION
  local began=$SECONDS status
  [[ "$1" =~ $only ]] || return 0
  set +e # a condition would switch errexit off inside as well: failures must count
  (
    set -e
    "$2"
  ) >"$dir/$2.log" 2>&1
  status=$?
  set -e
  if ((status == 0)); then
    passed=$((passed + 1))
    echo "ok    $1 ($((SECONDS - began)) s)"
  else
    failed=$((failed + 1))
    echo "FAIL  $1 ($((SECONDS - began)) s), $dir/$2.log:"
    tail -15 "$dir/$2.log" | sed 's/^/      /'
  fi
}

open_mpi() {
  nl job run -logs -var "examples=$dir/shared/examples" website/examples/mpi-pi.hcl | tee "$dir/openmpi.out"
  grep -q 'pi is 3.14159265.* by 3 ranks on 3 hosts: mpi-pi-1-0, mpi-pi-1-1, mpi-pi-1-2' "$dir/openmpi.out"
}

open_mpi_c() {
  mpicc.openmpi -O1 -o "$dir/shared/mpi_pi.openmpi" website/examples/mpi_pi.c
  nl job run -logs -var "command=mpirun.openmpi -n 3 $dir/shared/mpi_pi.openmpi" website/examples/mpi-pi.hcl | tee "$dir/openmpi-c.out"
  grep -q 'pi is 3.14159265.* by 3 ranks' "$dir/openmpi-c.out"
  [[ $(grep -cE 'rank [012] of 3 on mpi-pi-1-[012]' "$dir/openmpi-c.out") == 3 ]]
}

# processes_are starts every client's agent anew, with this isolation of its
# processes.
processes_are() {
  local name
  printf 'client {\n  exec {\n    isolation = "%s"\n  }\n}\n' "$1" >"$dir/isolation.hcl"
  for name in c1 c2 c3 c4; do
    kill "$(cat "$dir/$name/agent.pid")"
    wait_for 20 "the end of $name's agent" agent_gone "$name"
    agent_start "$name" -client -config "$dir/isolation.hcl"
  done
  wait_for 30 "clients that are back" clients_ready 4
}

agent_gone() { ! kill -0 "$(cat "$dir/$1/agent.pid")" 2>/dev/null; }

# MPICH 4.0 over UCX may hang in MPI_Finalize when its ranks reach each other by
# TCP alone: who is done first waits for the others without answering them any
# more. These hosts share a kernel, so ranks that are not isolated have shared
# memory, and end.
mpich() {
  printf 'pool "default" {\n  raw = true\n}\n' >"$dir/pool.hcl"
  nl pool apply "$dir/pool.hcl"
  processes_are raw
  mpich_pi
  processes_are auto
}

mpich_pi() {
  mpicc.mpich -O1 -o "$dir/shared/mpi_pi.mpich" website/examples/mpi_pi.c
  nl job run -logs -var "command=mpiexec.hydra -n 3 $dir/shared/mpi_pi.mpich" website/examples/mpi-pi.hcl | tee "$dir/mpich.out"
  grep -q 'pi is 3.14159265.* by 3 ranks' "$dir/mpich.out"
  [[ $(grep -oE 'rank [012] of 3 on mpi-pi-1-[012]' "$dir/mpich.out" | sort -u | wc -l) == 3 ]]
}

mpi_failure() { # a rank that fails ends the job with its code, and nothing is left
  local status=0
  nl job run -wait -var "command=mpirun.openmpi -n 3 sh -c 'exit 7'" website/examples/mpi-pi.hcl || status=$?
  ((status == 7))
}

torch() { # uninterrupted
  shared_dir ck-torch
  nl job run -logs -var "examples=$dir/shared/examples" -var "checkpoints=$dir/shared/ck-torch" -var epochs=12 website/examples/digits-ddp.hcl | tee "$dir/torch.out"
  awk '/held-out accuracy/ {for (i = 1; i < NF; i++) if ($i == "accuracy") a = $(i + 1)} END {exit !(a > 0.95)}' "$dir/torch.out"
}

# log_has JOB TEXT: whether rank 0 has written it.
log_has() { nl job logs -rank 0 "$1" 2>/dev/null | grep -q "$2"; }

torch_range() { # torchrun goes on by itself: after a process that is killed, then without a machine that is lost; all start anew when it is back
  shared_dir ck-range
  nl node cordon c4 # or its room would be taken at once
  nl job run -detach -var "examples=$dir/shared/examples" -var "checkpoints=$dir/shared/ck-range" -var epochs=200 website/examples/torchrun-range.hcl # still runs a minute after its start, when it may grow
  wait_for 60 "three nodes" log_has torchrun-range 'attempt 1: 3 ranks, starting at epoch 0' || { nl job status torchrun-range; nl job logs torchrun-range | tail -30; false; }
  wait_for 60 "a checkpoint" log_has torchrun-range 'epoch 1 loss'
  kill -9 "$(trainer_of torchrun-range-1-1)"
  wait_for 120 "three nodes again" log_has torchrun-range 'attempt 1: 3 ranks, starting at epoch [1-9]'
  lost=$(nl job inspect -t '{{range .Allocations}}{{if eq .Rank 2}}{{.NodeName}}{{end}}{{end}}' torchrun-range)
  host_cut "$lost"
  wait_for 120 "two nodes" log_has torchrun-range 'attempt 1: 2 ranks, starting at epoch [1-9]'
  [[ $(attempt_of torchrun-range) == 1 && $(state_of torchrun-range) == running ]]
  nl job history torchrun-range | grep 'continues without rank torchrun-range-1-2'
  host_mend "$lost"
  wait_for 30 "$lost ready again" node_is "$lost" ready
  wait_for 120 "three nodes in attempt 2" log_has torchrun-range 'attempt 2: 3 ranks, starting at epoch [1-9]'
  nl job history torchrun-range | grep 'continues with 3 nodes instead of 2'
  wait_for 60 "what it has learned" log_has torchrun-range 'epoch [1-9][0-9]* loss .* accuracy 0.9'
  nl job finish -wait torchrun-range # the rest of its epochs would show nothing more
  [[ $(attempt_of torchrun-range) == 2 && $(state_of torchrun-range) == succeeded ]]
  nl node uncordon c4
}

meets() { # EXAMPLE WHAT: all ranks of an example meet, and rank 0 names their hosts
  local name=$1 what=$2
  shift 2
  nl job run -logs -var "examples=$dir/shared/examples" "$@" "website/examples/$name.hcl" | tee "$dir/$name.out"
  grep -q "$what" "$dir/$name.out"
}

jax() { meets jax 'jax: 3 ranks met on jax-1-0, jax-1-1, jax-1-2'; }
tensorflow() { meets tensorflow 'tensorflow: 3 ranks met on tensorflow-1-0, tensorflow-1-1, tensorflow-1-2'; }

# python_of RANK: the pids of a rank's python processes, on whichever host.
python_of() {
  local name pid
  for name in c1 c2 c3 c4; do
    for pid in $(host_pids $name); do
      if [[ "$(cat "/proc/$pid/comm" 2>/dev/null)" == python3* ]] && grep -qz "^NOMADLIKE_RANK_NAME=$1$" "/proc/$pid/environ" 2>/dev/null; then echo "$pid"; fi
    done
  done
}

# trainer_of RANK: the pid of its training process, which torchrun started. Numbers of
# processes begin anew on a busy machine: the later one may be smaller.
trainer_of() {
  local pids pid
  pids=$(python_of "$1")
  for pid in $pids; do
    if grep -qx "$(awk '/^PPid:/ {print $2}' "/proc/$pid/status")" <<<"$pids"; then
      echo "$pid"
      return
    fi
  done
  echo "no training process of $1 among: $pids" >&2
  return 1
}

parameter_servers() { # the servers outlive every worker but the last; one that dies restarts the gang
  nl job run -logs -var "examples=$dir/shared/examples" website/examples/tensorflow-ps.hcl | tee "$dir/ps.out"
  [[ $(grep -cE 'worker [012] of 3 is done with 2 servers, error' "$dir/ps.out") == 3 ]]
  grep -qE 'worker 2 of 3 is done with 2 servers, error 0\.0' "$dir/ps.out"
  [[ $(grep -cE 'ps [01] on tensorflow-ps-1-ps[01] holds 3 weights' "$dir/ps.out") == 2 ]]
  nl job run -detach -var "examples=$dir/shared/examples" -var steps=4000 website/examples/tensorflow-ps.hcl >"$dir/ps.id"
  wait_for 30 "the servers" is state_of tensorflow-ps running
  [[ $(nl job inspect -t '{{range .Allocations}}{{.Spec.CPU}} {{end}}' tensorflow-ps) == "0.5 0.5 0.5 1 1 " ]]
  kill -9 $(python_of tensorflow-ps-1-ps0)
  again() { [[ $(attempt_of tensorflow-ps) == 2 && $(state_of tensorflow-ps) == running ]]; }
  wait_for 40 "attempt 2" again
  nl job stop -wait tensorflow-ps
}
mindspore() { meets mindspore 'mindspore: 3 ranks met on mindspore-1-0, mindspore-1-1, mindspore-1-2'; }
horovod() { meets horovod 'by 3 ranks on 3 hosts: horovod-1-0, horovod-1-1, horovod-1-2'; }

deepspeed() { # as typed, behind a shell, on every node, and under mpi: all the ways that people write it
  local met='torch: 6 ranks met on deepspeed-1-0, deepspeed-1-0, deepspeed-1-1, deepspeed-1-1, deepspeed-1-2, deepspeed-1-2'
  nl job run -logs -var "launcher=$dir/shared/deepspeed" -var "script=$dir/shared/examples/meet.py" website/examples/deepspeed.hcl | tee "$dir/deepspeed.out"
  grep -q "$met" "$dir/deepspeed.out"
  local name
  for name in shell every row; do
    deepspeed_file $name >"$dir/deepspeed-$name.hcl"
    nl job run -logs "$dir/deepspeed-$name.hcl" | tee "$dir/deepspeed.out"
    grep -q "${met//deepspeed-1/$name-1}" "$dir/deepspeed.out"
    if [[ $name == shell ]]; then grep -q 'asked for the address of shell-1-0: 10\.' "$dir/deepspeed.out"; fi
  done
}
deepspeed_file() {
  local run="$dir/shared/deepspeed" mode=deepspeed more= command
  case $1 in
  shell) command="bash -c 'cd . && $run --master_port=29512 $dir/shared/examples/meet.py'" ;;
  every) command="$run $dir/shared/examples/meet.py" more='launcher = "no_ssh"' ;;
  row) command="$run --hostfile \$OMPI_MCA_orte_default_hostfile --master_port=29513 $dir/shared/examples/meet.py" mode=mpi ;;
  esac
  cat <<END
job "$1" {
  nodes = 3
  resources {
    cpu    = 0.5
    memory = "256MiB"
  }
  distributed "$mode" {
    procs_per_node = 2
    $more
  }
  task { command = "$command" }
}
END
}

agent_killed() { # kill -9 of a client's agent: its task goes on and is found again
  sleeper survives
  local node pids
  node=$(node_of survives)
  pids=$(sleeps "$node")
  kill -9 "$(agent_pid "$node")"
  agent_start "$node" -client
  wait_for 20 "$node ready again" node_is "$node" ready
  [[ $(state_of survives) == running && $(attempt_of survives) == 1 ]]
  [[ "$(sleeps "$node")" == "$pids" ]]
  wait_for 20 "a command beside it" enters survives # a node is ready before a server has told it again what runs there
  nl job stop -wait survives
}

cut_from_servers() { # the servers cannot hear a node, its peers can: training goes on
  sleeper isolated
  local node s
  node=$(node_of isolated)
  for s in s1 s2 s3; do ip -n "$HOSTS_PREFIX-$node" route add blackhole "$(host_addr $s)/32"; done
  wait_for 20 "$node disconnected" node_is "$node" disconnected
  [[ $(state_of isolated) == running && $(attempt_of isolated) == 1 ]]
  for s in s1 s2 s3; do ip -n "$HOSTS_PREFIX-$node" route del blackhole "$(host_addr $s)/32"; done
  wait_for 20 "$node ready again" node_is "$node" ready
  [[ $(state_of isolated) == running && $(attempt_of isolated) == 1 ]]
  nl job stop -wait isolated
}

lost_and_back() { # a machine vanishes, its job runs elsewhere; back again, it kills the old attempt
  sleeper wanders
  local node other
  node=$(node_of wanders)
  host_cut "$node"
  moved() { [[ $(attempt_of wanders) == 2 && $(state_of wanders) == running ]]; }
  wait_for 20 "attempt 2" moved
  other=$(node_of wanders)
  [[ "$other" != "$node" ]]
  sleeps "$node" # cut off, it still runs the old attempt
  host_mend "$node"
  wait_for 30 "$node ready again" node_is "$node" ready
  gone() { ! sleeps "$node"; }
  wait_for 10 "the old attempt killed" gone
  [[ $(attempt_of wanders) == 2 && $(state_of wanders) == running ]]
  nl job stop -wait wanders
}

leader_killed() {
  local leader
  leader=$(nl operator raft list-peers -json | awk '/"name":/ {name=$2} /"leader": true/ {gsub(/[",]/,"",name); print name}')
  kill -9 "$(agent_pid "$leader")"
  printf 'job "after" {\n  resources {\n    cpu = 0.1\n    memory = "16MiB"\n  }\n  task { command = "true" }\n}\n' >"$dir/after.hcl"
  nl job run -wait "$dir/after.hcl"
  agent_start "$leader" -server -bootstrap-expect 3
  healthy() { nl operator autopilot health -json | grep -q '"failure_tolerance": 1'; }
  wait_for 30 "three healthy servers" healthy
}

everything_restarts() { # every agent at once: no task is lost, the cluster comes back
  sleeper stays 3
  local name before after
  before=$(for name in c1 c2 c3 c4; do sleeps "$name" || true; done | sort | tr '\n' ' ')
  [[ $(wc -w <<<"$before") == 3 ]]
  for name in "${!HOST_INDEX[@]}"; do kill -9 "$(agent_pid "$name")"; done
  for name in s1 s2 s3; do agent_start "$name" -server -bootstrap-expect 3; done
  for name in c1 c2 c3 c4; do agent_start "$name" -client; done
  wait_for 40 "four ready clients" clients_ready 4
  [[ $(state_of stays) == running && $(attempt_of stays) == 1 ]]
  after=$(for name in c1 c2 c3 c4; do sleeps "$name" || true; done | sort | tr '\n' ' ')
  [[ "$before" == "$after" ]]
  nl job stop -wait stays
}

wrong_join() { # an agent with a token of another cluster sends no secret and says why
  local status=0
  sed -E 's/^nl1\.[0-9a-f]{8}/nl1.00000000/' "$HOSTS_DIR/s1/data/join-client" >"$dir/wrong"
  timeout 20 "$NOMADLIKE" agent -client -data-dir "$dir/wrong-data" -bind 127.0.0.1 -advertise 127.0.0.1 -port 24999 -gossip-port 24998 -join-token-file "$dir/wrong" >"$dir/wrong.log" 2>&1 || status=$?
  cat "$dir/wrong.log"
  ((status != 0 && status != 124))
}

# drill: every disk of every server is lost but for an archive and a copy of one
# identity directory. What runs goes on, is started once, and no number of an
# attempt comes again. The guide tells operators to do the same.
drill() {
  local name pid before began=$SECONDS
  sleeper drilled 2
  before=$(for name in c1 c2 c3 c4; do sleeps "$name" || true; done | sort | tr '\n' ' ')
  [[ $(wc -w <<<"$before") == 2 ]]
  for name in c1 c2 c3 c4; do nl node cordon $name; done
  printf 'job "later" {\n  resources {\n    cpu = 0.1\n    memory = "16MiB"\n  }\n  task { command = "sleep 3600" }\n  stop_grace = "2s"\n}\n' >"$dir/later.hcl"
  nl job run -detach "$dir/later.hcl"
  nl operator snapshot save "$dir/drill.snap"
  nl operator snapshot inspect "$dir/drill.snap"
  for name in c1 c2 c3 c4; do nl node uncordon $name; done
  wait_for 20 "attempt 1, which the archive does not know" is state_of later running
  [[ $(attempt_of later) == 1 ]]
  sleeper unknown
  cp -r "$HOSTS_DIR/s1/data/identity" "$dir/identity"
  for name in s1 s2 s3; do
    kill -9 "$(agent_pid "$name")"
    rm -rf "${HOSTS_DIR:?}/$name/data"
  done
  wait_for 20 "the port of s1" port_free s1
  install -d -m 711 "$HOSTS_DIR/s1/data"
  cp -r "$dir/identity" "$HOSTS_DIR/s1/data/identity"
  nl operator raft recover -yes -snapshot "$dir/drill.snap" -advertise "$(host_addr s1):$(host_port s1)" "$HOSTS_DIR/s1/data"
  agent_start s1 -server -bootstrap-expect 3
  wait_for 60 "four ready clients" clients_ready 4
  for name in c1 c2 c3 c4; do nl node uncordon $name; done # the archive is of when they were cordoned
  wait_for 60 "the job that waited" is state_of later running
  nl job status drilled
  nl job status later
  [[ $(state_of drilled) == running && $(attempt_of drilled) == 1 ]]
  (($(attempt_of later) > 1000))
  if nl job status unknown; then return 1; fi # it came after the archive
  three() { [[ $(for name in c1 c2 c3 c4; do sleeps "$name" || true; done | wc -l) == 3 ]]; }
  wait_for 20 "two old tasks, one new, and the unknown one ended" three
  for pid in $before; do kill -0 "$pid"; done
  # The others join anew, and the cluster is whole.
  nl token join create -role server -uses 2 >"$dir/join-again"
  [[ -s $dir/join-again ]]
  for name in s2 s3; do agent_start $name -server -bootstrap-expect 3 -join-token-file "$dir/join-again"; done
  whole() { nl operator autopilot health -json | grep -q '"failure_tolerance": 1'; }
  wait_for 60 "three healthy servers" whole
  nl job stop -wait drilled
  nl job stop -wait later
  echo "the drill took $((SECONDS - began)) s"
}

port_free() { ! host_run "$1" bash -c "exec 3<>/dev/tcp/$(host_addr "$1")/$(host_port "$1")" 2>/dev/null; }

# attack_exec: a plain user's job against the node, the agent, the administrator,
# another project's job and its ranks on other nodes; isolated and raw.
attack_exec() {
  attacks
  printf 'pool "default" {\n  raw = true\n}\n' >"$dir/pool.hcl"
  nl pool apply "$dir/pool.hcl"
  processes_are raw
  attacks
  processes_are auto
}

refused() { if "$@"; then return 1; fi; } # "!" alone does not end a scenario

attacks() {
  local token node data id rsh kept path user
  printf 'job "victim" {\n  project = "victims"\n  nodes = 2\n  resources {\n    cpu = 0.1\n    memory = "32MiB"\n  }\n  distributed "mpi" {}\n  task { command = "sleep 3600" }\n  stop_grace = "1s"\n}\n' >"$dir/victim.hcl"
  nl job run -detach "$dir/victim.hcl"
  wait_for 40 "the victim" is state_of victim running
  node=$(nl job inspect -t '{{range .Allocations}}{{if eq .Rank 0}}{{.NodeName}}{{end}}{{end}}' victim)
  id=$(nl job inspect -t '{{range .Allocations}}{{if eq .Rank 0}}{{.ID}}{{end}}{{end}}' victim)
  data=$HOSTS_DIR/$node/data rsh=$HOSTS_DIR/$node/data/client/alloc/$id kept=$HOSTS_DIR/$node/data/client/records/$id
  [[ -s $kept/rsh-token && -S $rsh/rsh/agent.sock ]]
  {
    for path in /etc/cron.d/nl-attack /root/nl-attack /usr/local/bin/nl-attack "$data/nl-attack" "$rsh/task/nl-attack" "$kept/output.json"; do
      echo "(echo x >$path) 2>/dev/null && echo BROKEN wrote $path"
    done
    for path in /etc/shadow "$HOSTS_DIR/cli/context.json" "$HOSTS_DIR/s1/data/join-server" "$data/identity/agent-key.pem" "$data/identity/gossip.key" "$kept/rsh-token" \
      "$kept/logs/stdout.0" "$kept/hooks.json" "$kept/hold-task.json" "$data/client/allocs.db"; do
      echo "[ -n \"\$(cat $path 2>/dev/null)\" ] && echo BROKEN read $path"
    done
    echo "ls $rsh/task $kept >/dev/null 2>&1 && echo BROKEN listed the directories of another job"
    # Even whoever has learned the token finds the door of another job's rank closed.
    echo "NOMADLIKE_RSH_SOCKET=$rsh/rsh/agent.sock NOMADLIKE_RSH_TOKEN=$(cat "$kept/rsh-token") nomadlike mpi-rsh victim-1-1 'echo BROKEN ran in the rank of another job'"
    echo "for p in /proc/[0-9]*; do tr '\\0' '\\n' 2>/dev/null <\$p/environ | grep -q '^NOMADLIKE_JOB_NAME=victim' && echo BROKEN read the environment of another job; done"
    echo 'for p in $(grep -l "^sleep" /proc/[0-9]*/comm 2>/dev/null); do kill -0 "$(basename "$(dirname "$p")")" 2>/dev/null && echo BROKEN may kill a process of another job; done'
    echo '[ "$(id -u)" -ge 1879048192 ] || echo "BROKEN runs as $(id)"'
    echo 'touch mine && echo all was tried'
  } >"$dir/shared/attack.sh"
  chmod 644 "$dir/shared/attack.sh"
  token=$(nl token create -role user -user mallory -project plain -name mallory | grep -oE 'nl_[a-z]+_[a-z2-7]+')
  printf 'job "attack" {\n  project = "plain"\n  resources {\n    cpu = 0.1\n    memory = "64MiB"\n  }\n  placement { nodes = ["%s"] }\n  task { command = "sh %s" }\n}\n' "$node" "$dir/shared/attack.sh" >"$dir/attack.hcl"
  NOMADLIKE_TOKEN=$token nl job run -logs "$dir/attack.hcl" | tee "$dir/attack.out"
  grep -q 'all was tried' "$dir/attack.out"
  refused grep BROKEN "$dir/attack.out"
  # Another account, and root, are refused with the cure: before the log, or by the node.
  for user in root 0 daemon; do
    sed "s/task {/task {\n    user = \"$user\"\n/; s/\"attack\"/\"attack-$user\"/; s/command = .* }/command = \"id\"\n  }/" "$dir/attack.hcl" >"$dir/attack-$user.hcl"
    NOMADLIKE_TOKEN=$token refused nl job run -logs "$dir/attack-$user.hcl" >"$dir/attack-$user.out" 2>&1
    refused grep uid= "$dir/attack-$user.out"
    grep -q 'ask an administrator' "$dir/attack-$user.out" || { cat "$dir/attack-$user.out"; false; }
  done
  nl job stop -wait victim
  nl job delete victim
  for user in "" -0 -root -daemon; do nl job delete "attack$user" || true; done
}

# old_binary: the program of the commit that scripts/upgrade-from names, built
# from this clone's history.
old_binary() {
  local from
  from=$(sed '/^#/d' scripts/upgrade-from)
  if ! git cat-file -e "$from^{commit}" 2>/dev/null; then
    echo "upgrade: commit $from of scripts/upgrade-from is not here: the history is shallow (git fetch --unshallow) or missing" >&2
    return 1
  fi
  mkdir -p "$dir/old"
  git archive "$from" | tar -x -C "$dir/old"
  (cd "$dir/old" && make --no-print-directory build VERSION="${from:0:12}" >&2)
  echo "$dir/old/bin/nomadlike"
}

# Three servers and two nodes of an earlier version, with a gang on the nodes; a
# node of this version works below the old servers; a server of this version leads
# them; then all servers are of this version, and a node of the earlier one works
# below them; then all nodes are, and a node and a server take a step back. No
# submission is lost, no old server ends, the gang goes on in its first attempt, and
# what cannot go back says so.
upgrade() {
  local old new=$NOMADLIKE name jobs=0
  old=$(old_binary)
  trap 'for name in u1 u2 u3 w1 w2; do host_gone "$name"; done' EXIT
  for name in u1 u2 u3 w1 w2; do host_add "$name"; done
  node() { NOMADLIKE=$2 agent_start "$1" -client -join-token-file "$HOSTS_DIR/u1/data/join-client"; } # NAME BINARY
  node_at() { # NAME BINARY: its agent is replaced; the gang's rank goes on below it
    kill -TERM "$(agent_pid "$1")"
    wait_for 30 "$1 ended" ends "$1"
    node "$1" "$2"
    works "$1"
    gang_goes_on
  }
  works() { # NAME: the node is ready, and a gang on all nodes runs to its end
    wait_for 60 "node $1" node_is "$1" ready
    jobs=$((jobs + 1))
    printf 'job "upgrade-%s" {\n  nodes = 2\n  resources {\n    cpu = 0.1\n    memory = "16MiB"\n  }\n  distributed "none" {}\n  task { command = "true" }\n}\n' "$jobs" >"$dir/upgrade.hcl"
    nl job run -detach "$dir/upgrade.hcl" >/dev/null
    wait_for 60 "the gang on all nodes" is state_of "upgrade-$jobs" succeeded
  }
  gang_goes_on() {
    wait_for 30 "the gang" is state_of through running
    [[ "$(attempt_of through)" == 1 ]]
    sleeps w1 >/dev/null
    sleeps w2 >/dev/null
    enters through
  }
  server() { # NAME BINARY
    NOMADLIKE=$2 agent_start "$1" -server -bootstrap-expect 3 $([[ "$1" == u1 ]] || echo "-join-token-file $HOSTS_DIR/u1/data/join-server")
  }
  ends() { ! kill -0 "$(agent_pid "$1")" 2>/dev/null; }
  replace() { # NAME BINARY
    kill -TERM "$(agent_pid "$1")"
    wait_for 30 "$1 ended" ends "$1"
    server "$1" "$2"
    await_health
  }
  await_health() {
    wait_for 60 "three healthy servers" healthy && return
    nl operator autopilot health || true
    for name in u1 u2 u3; do
      echo "$name:"
      tail -n 12 "$HOSTS_DIR/$name/agent.log"
    done
    return 1
  }
  healthy() { nl operator autopilot health -json | grep -q '"failure_tolerance": 1'; }
  leader() { nl operator raft list-peers -json | awk '/"name":/ {name=$2} /"leader": true/ {gsub(/[",]/,"",name); print name}'; }
  at() { # NAME COMMAND...: asks one server alone
    local name=$1
    shift
    NOMADLIKE_ADDR=https://$(host_addr "$name"):$(host_port "$name") nl "$@"
  }
  submit() { # through each server
    local name
    for name in u1 u2 u3; do
      jobs=$((jobs + 1))
      printf 'job "upgrade-%s" {\n  resources {\n    cpu = 0.1\n    memory = "16MiB"\n  }\n  task { command = "true" }\n}\n' "$jobs" >"$dir/upgrade.hcl"
      at "$name" job run -detach "$dir/upgrade.hcl" >/dev/null
    done
  }
  holds_all() { [[ $(at "$1" job list -json | grep -c '"name": "upgrade-') == "$jobs" ]]; }
  all_hold() { for name in u1 u2 u3; do wait_for 30 "$jobs jobs at $name" holds_all "$name"; done; }

  server u1 "$old"
  wait_for 60 "join lines of the first server" test -s "$HOSTS_DIR/u1/data/join-server"
  for name in u2 u3; do server "$name" "$old"; done
  export NOMADLIKE_CONFIG_DIR=$dir/upgrade-cli NOMADLIKE_CACERT=$HOSTS_DIR/u1/data/identity/ca.pem
  NOMADLIKE_ADDR=$(for name in u1 u2 u3; do printf '%shttps://%s:%s' "$([[ $name == u1 ]] || echo ,)" "$(host_addr "$name")" "$(host_port "$name")"; done)
  export NOMADLIKE_ADDR
  wait_for 60 "a leader" "$NOMADLIKE" token bootstrap -setup-file "$HOSTS_DIR/u1/data/setup-secret"
  await_health
  submit
  all_hold
  for name in w1 w2; do node "$name" "$old"; done
  for name in w1 w2; do wait_for 60 "node $name" node_is "$name" ready; done
  sleeper through 2
  gang_goes_on
  node_at w2 "$new"

  replace u1 "$new"
  # Whoever else leads is killed, so that the two others run for it: a leader that
  # stops in order hands over, and old ones hand over to each other.
  for ((round = 0; round < 20; round++)); do
    name=$(leader)
    [[ "$name" != u1 ]] || break
    kill -KILL "$(agent_pid "$name")"
    wait_for 30 "$name ended" ends "$name"
    server "$name" "$old"
    await_health
  done
  if [[ $(leader) != u1 ]]; then
    echo "the new server never led"
    return 1
  fi
  submit
  all_hold
  for name in u2 u3; do
    kill -0 "$(agent_pid "$name")" # an old server lives
    if grep -q 'panic' "$HOSTS_DIR/$name/agent.log"; then return 1; fi
  done

  gang_goes_on

  for name in u2 u3; do replace "$name" "$new"; done
  submit
  all_hold
  works w1 # which is old
  gang_goes_on
  node_at w1 "$new"
  node_at w1 "$old" # a step back
  node_at w1 "$new"

  kill -TERM "$(agent_pid u3)" # a step back
  wait_for 30 "u3 ended" ends u3
  server u3 "$old"
  back() { ends u3 || holds_all u3; }
  wait_for 60 "u3 refused or at work" back
  if ends u3; then
    echo "the step back is refused:"
    grep -aE 'unknown to this version|does not know|format version' "$HOSTS_DIR/u3/agent.log" | tail -1 # it says why
  else
    kill -TERM "$(agent_pid u3)"
    wait_for 30 "u3 ended" ends u3
  fi
  server u3 "$new"
  await_health
  submit
  all_hold
  gang_goes_on
  nl job stop -wait through
}

hosts_up "$dir" s1 s2 s3 c1 c2 c3 c4
trap finish EXIT
share website/examples scripts/e2e/deepspeed
cluster_up 3 4
echo "three servers and four clients are ready"
scenario "Open MPI with mpi4py over three nodes" open_mpi
scenario "Open MPI with C" open_mpi_c
scenario "MPICH with C" mpich
scenario "a failing MPI rank gives the job its exit code" mpi_failure
scenario "PyTorch DDP over three nodes" torch
scenario "torchrun goes on within its range" torch_range
scenario "JAX's environment" jax
scenario "TensorFlow's TF_CONFIG" tensorflow
scenario "TensorFlow with parameter servers" parameter_servers
scenario "MindSpore's environment" mindspore
scenario "Horovod by mpirun" horovod
scenario "DeepSpeed by pdsh and ssh without either" deepspeed
scenario "kill -9 of a client's agent" agent_killed
scenario "a node cut from the servers alone" cut_from_servers
scenario "a lost machine and its return" lost_and_back
scenario "kill -9 of the leader" leader_killed
scenario "kill -9 of every agent" everything_restarts
scenario "joining with the wrong CA" wrong_join
scenario "drill: all servers come back from an archive" drill
scenario "attack-exec: a plain user's job against its node and its neighbours" attack_exec
scenario "upgrade: old and new servers on one log, old and new nodes below a gang, and a step back" upgrade
echo "$passed passed, $failed failed"
((passed + failed > 0)) || { echo "no scenario is called $only: see the end of scripts/e2e.sh" >&2; exit 2; }
((failed == 0))
