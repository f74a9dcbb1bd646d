#!/usr/bin/env bash
# Measures the real binary; one JSON line for each figure on stdout. Arguments
# go to the program in scripts/bench, for instance -only 'submit|throughput'.
set -euo pipefail
cd "$(dirname "$0")/.."
exec go run ./scripts/bench -binary bin/nomadlike "$@"
