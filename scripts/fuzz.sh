#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time each (30s unless
# told). Stops at the first finding.
set -euo pipefail
cd "$(dirname "$0")/.."
each=${1:-30s}
grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do
  package=./$(dirname "${file#./}")
  grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/func //' | while read -r target; do
    echo "== $package $target for $each"
    go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$each" -fuzzminimizetime 10x
  done
done
