#!/usr/bin/env bash
# Runs every test of the normal run, installing what they need. Second command
# of the README; can be run twice. Options: --fast leaves out the race detector
# and the tests that need PyTorch and MPI; --quick runs, for the working day, format,
# vet, lint, the floor plan and every test that starts no agent, engine or browser,
# and installs nothing but the linter. Each step ends with its seconds.
set -euo pipefail
cd "$(dirname "$0")/.."

fast=false
[[ "${1:-}" == --fast ]] && fast=true

quick=false
[[ "${1:-}" == --quick ]] && quick=true

# step NAME: a heading, with how long the step before took.
began=$SECONDS name=""
took() { [[ -z "$name" ]] || printf '   (%s: %d s)\n' "$name" $((SECONDS - began)); }
step() {
  took
  began=$SECONDS name=$*
  printf '\n== %s\n' "$*"
}
run() { printf '+ %s\n' "$*"; "$@"; }

step "tools"
command -v go >/dev/null || { echo "Go is missing: install Go 1.26 or newer from your distribution or go.dev" >&2; exit 1; }
run go version
if $quick; then
  # Left out are the rooms whose tests start agents, engines, tasks or thousands of
  # random clusters, for minutes.
  slow='^nomadlike/(agent(/httpapi)?|command|nomadlike/(client|client/data|consensus|server|sim)|plugins/(docker|exec|host|nvidia/nvml|nvidia|ascend/dcmi|cambricon/cndev|amd/amdsmi)|website/examples/.*|scripts/python)$'
  mapfile -t packages < <(go list ./... | grep -vE "$slow")
  step "format, vet, lint"
  run make embedded fmt vet lint
  step "tests"
  run go test -timeout 5m "${packages[@]}"
  run go test -timeout 5m -run 'Guide|Links|Reference|JobFile|Messages' ./command
  took
  printf '\nall quick tests passed in %d s\n' $SECONDS
  exit 0
fi
packages=(iproute2 iptables procps strace rpm)
$fast || packages+=(prometheus gcc libc6-dev docker.io docker-registry openssh-server slapd samba-ad-dc samba-ad-provision rsyslog rsyslog-gnutls python3-torch python3-sklearn openmpi-bin libopenmpi-dev mpich libmpich-dev python3-mpi4py)
run scripts/packages.sh "${packages[@]}"

step "modules"
run go mod download
run go mod verify

step "build"
run make build

step "checks: format, vet, lint, generated files, floor plan"
run make fmt vet lint generated

# The race detector runs every room but those that decide purely: these start no
# goroutine and share nothing, or are programs of tests. What it runs is not run
# without it, but for the tests that -short leaves out. Those of a room that wait for
# agents, engines and processes use little of the processor: several run at once.
# A program with the detector sleeps for a second at its end, in case another
# goroutine still makes a race; tests that wait for their goroutines, and start
# thousands of programs, do without. What vet says of all of it has been said above.
pure='^nomadlike/(nomadlike/(structs|predict|scheduler|forecast|launch|sim)|jobspec|internal/(archtest|messages)|scripts|ui|website)(/|$)'
racing=() plain=()
$fast || mapfile -t racing < <(go list ./... | grep -vE "$pure")
mapfile -t plain < <(go list ./... | grep -vxF -f <(printf '%s\n' "${racing[@]:-none}"))

step "tests of what decides purely"
run go test -vet=off -timeout 20m "${plain[@]}"
run go -C scripts/release test ./... # a module of its own

if ! $fast; then
  step "tests with the race detector"
  run env CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 go test -race -vet=off -short -timeout 30m -p 4 "${racing[@]}"
  step "tests that -short leaves out"
  { read -r pattern && read -r -a packages; } < <(go run ./scripts/longtests "${racing[@]#nomadlike/}")
  run go test -vet=off -timeout 20m -p 4 -run "$pattern" "${packages[@]}"
fi

node_fits() { command -v npm >/dev/null && node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || a == 20 && b >= 19 ? 0 : 1)'; }
step "web pages: types, components, a person's day in Chromium"
if node_fits; then
  run scripts/ui.sh --test
else
  echo "no Node 20.19 or newer: the web pages are not built, and their tests are left out"
fi

if ! $fast; then
  if ((EUID == 0)); then
    # The machine has a processor that is emulated, and gives way to the rest: it runs
    # beside what mostly waits, namespaces and attacks, and its lines are shown after.
    machine= lines=$(mktemp)
    stop_machine() { [[ -z "$machine" ]] || kill -- "-$machine" 2>/dev/null || true; rm -f "$lines"; }
    trap stop_machine EXIT
    # An old kernel's road takes everything once more, and how long steps take beside
    # hogs is the emulator's affair: both stay with the host.
    version2=(env V2_LIMIT=1500 V2_SKIP="TestOnOldKernel|TestNeighbourOfHogs" scripts/v2.sh . exec)
    if [[ "$(dpkg --print-architecture 2>/dev/null)" == amd64 ]]; then
      setsid "${version2[@]}" >"$lines" 2>&1 &
      machine=$!
    fi
    step "real hosts: PyTorch and MPI over network namespaces"
    run scripts/e2e.sh
    step "five minutes of attacks on a cluster"
    run scripts/nemesis.sh -seed 1 -minutes 5
    step "the exec driver with cgroups of version 2, in a machine of its own"
    if [[ -n "$machine" ]]; then
      printf '+ %s\n' "${version2[*]}"
      passed=true
      wait "$machine" || passed=false
      machine=
      cat "$lines"
      $passed
    else
      echo "no amd64 Debian: the machine is not booted, and its tests are left out"
    fi
  else
    echo "not root: the tests with network namespaces and of cgroup version 2 (scripts/e2e.sh, scripts/v2.sh, scripts/nemesis.sh) are left out"
  fi
fi
took
printf '\nall tests passed in %d s\n' $SECONDS
