#!/usr/bin/env bash
# Builds the web pages that the binary carries, into ui/dist/app, and with
# --test checks and tests them: types, components, a person's day in Chromium
# against the real agent, and one on a cluster of three machines. Needs Node
# 20.19 or newer and, for the modules, the npm registry once. Can be run twice. With
# --pages it also installs the browser that draws them, and tests nothing.
#
#   scripts/ui.sh [--test | --pages]
set -euo pipefail
cd "$(dirname "$0")/.."

test=false
[[ "${1:-}" == --test ]] && test=true
run() { printf '+ %s\n' "$*"; "$@"; }

command -v npm >/dev/null || { echo "npm is missing: install Node 20.19 or newer (Debian: apt-get install nodejs npm, or nodejs.org)" >&2; exit 1; }
cd ui
# Modules are installed anew only when the lock file is newer than they are.
if [[ ! -e node_modules/.package-lock.json || package-lock.json -nt node_modules/.package-lock.json ]]; then
  run npm ci --no-audit --no-fund
  touch node_modules/.package-lock.json
fi
run npm run --silent check
run npm run --silent build
scripts=$(find dist/app/assets -name '*.js.gz' -printf '%s\n' | awk '{ sum += $1 } END { print int(sum / 1024) }')
echo "ui: $scripts KiB of packed scripts in ui/dist/app"
browser() {
  [[ -x /usr/bin/chromium && -d /usr/share/fonts/opentype/noto ]] || run scripts/packages.sh chromium fonts-noto-cjk fonts-dejavu-core
}
if [[ "${1:-}" == --pages ]]; then
  cd ..
  browser
  run make --no-print-directory docs
fi
$test || exit 0

run npm test --silent
cd ..
browser
run make build
cd ui
run npm run --silent browser -- --binary ../bin/nomadlike
run npm run --silent cluster -- --binary ../bin/nomadlike
