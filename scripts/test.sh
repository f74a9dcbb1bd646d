#!/usr/bin/env bash
# Runs every test of the normal run, installing what they need. Second command
# of the README; can be run twice. Options: --fast leaves out the race detector
# and the tests that need PyTorch and MPI; --quick runs, for the working day, format,
# vet, the floor plan and every test that starts no agent, engine or browser, and
# installs nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

fast=false
[[ "${1:-}" == --fast ]] && fast=true

quick=false
[[ "${1:-}" == --quick ]] && quick=true

step() { printf '\n== %s\n' "$*"; }
run() { printf '+ %s\n' "$*"; "$@"; }

step "tools"
command -v go >/dev/null || { echo "Go is missing: install Go 1.26 or newer from your distribution or go.dev" >&2; exit 1; }
run go version
if $quick; then
  # Left out are the rooms whose tests start agents, engines, tasks or thousands of
  # random clusters, for minutes.
  slow='^nomadlike/(agent|command|nomadlike/(client|client/data|consensus|server|sim)|plugins/(docker|exec|host|nvidia/nvml|nvidia|ascend/dcmi|cambricon/cndev|amd/amdsmi)|website/examples/.*)$'
  mapfile -t packages < <(go list ./... | grep -vE "$slow")
  run make embedded fmt vet
  run go test -timeout 5m "${packages[@]}"
  run go test -timeout 5m -run 'Guide|Links|Reference|JobFile|Messages' ./command
  printf '\nall quick tests passed\n'
  exit 0
fi
packages=(iproute2 iptables procps strace rpm)
$fast || packages+=(gcc libc6-dev docker.io python3-torch python3-sklearn openmpi-bin libopenmpi-dev mpich libmpich-dev python3-mpi4py)
run scripts/packages.sh "${packages[@]}"

step "modules"
run go mod download
run go mod verify

step "build"
run make build

step "checks: format, vet, generated files, floor plan"
run make fmt vet generated

# What the race detector runs is not run without it, but for the rooms that have
# parts which -short leaves out. Left to make race are the rooms that decide
# purely, which start no goroutine and share nothing, the two drivers, which wait
# for a real engine and for real processes most of the time, and the command line
# and whole agents, which take ten minutes each with the detector.
pure='^nomadlike/nomadlike/(structs|predict|scheduler|forecast|launch|sim)(/|$)'
drivers='^nomadlike/plugins/(docker|exec)$'
parts='^nomadlike/nomadlike/consensus$'
racing=() plain=()
$fast || mapfile -t racing < <(go list ./nomadlike/... ./plugins/... | grep -vE "$pure|$drivers")
mapfile -t plain < <(go list ./... | grep -vxF -f <(printf '%s\n' "${racing[@]}" | grep -vE "$parts"))

step "tests"
run go test -timeout 15m "${plain[@]}"
run go -C scripts/release test ./... # a module of its own

node_fits() { command -v npm >/dev/null && node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || a == 20 && b >= 19 ? 0 : 1)'; }
step "web pages: types, components, a person's day in Chromium"
if node_fits; then
  run scripts/ui.sh --test
else
  echo "no Node 20.19 or newer: the web pages are not built, and their tests are left out"
fi

if ! $fast; then
  step "tests with the race detector"
  run env CGO_ENABLED=1 go test -race -short -timeout 15m "${racing[@]}"
  if ((EUID == 0)); then
    step "real hosts: PyTorch and MPI over network namespaces"
    run scripts/e2e.sh
    step "five minutes of attacks on a cluster"
    run scripts/nemesis.sh -seed 1 -minutes 5
  else
    echo "not root: the tests with network namespaces (scripts/e2e.sh, scripts/nemesis.sh) are left out"
  fi
fi
printf '\nall tests passed\n'
