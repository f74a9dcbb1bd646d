#!/usr/bin/env bash
# First command of the README: a cluster of three servers and four clients, a
# real PyTorch training over three of them, a machine that dies, and the
# training that goes on. Ends by printing the address of the web pages and how
# to sign in there. Installs what is missing; can be run twice.
#
#   scripts/demo.sh [--keep]    --keep: the cluster stays up until Ctrl-C
#
# NOMADLIKE names an agent that is built already: then nothing is, and Go is not needed.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
stay=false
case "${1:-}" in
'') ;;
--keep) stay=true ;;
*) echo "usage: scripts/demo.sh [--keep]" >&2; exit 2 ;;
esac

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
[[ -t 1 ]] || say() { printf '\n== %s\n' "$*"; }

say "what the demonstration needs"
scripts/packages.sh iproute2 procps python3-torch python3-sklearn
pages=ui/dist/app/index.html
if [[ -z "${NOMADLIKE:-}" ]]; then
  command -v go >/dev/null || { echo "Go is missing: install Go 1.26 or newer from your distribution or go.dev" >&2; exit 1; }
  scripts/packages.sh make
  # The web pages need Node; without it the agent serves a page that says so.
  if [[ ! -e $pages ]] && command -v npm >/dev/null; then scripts/ui.sh || echo "the web pages could not be built; the demonstration goes on without them" >&2; fi
  make --no-print-directory build
fi

source scripts/hosts.sh
dir=$(scratch_dir demo)
keep=true # logs of one that fails are looked at
finish() { hosts_down; if $keep; then echo "logs are in $dir" >&2; else rm -rf "$dir"; fi; }

say "three servers and four clients, each a host of its own"
hosts_up "$dir" s1 s2 s3 c1 c2 c3 c4
trap finish EXIT
began=$(date +%s.%N)
cluster_up 3 4
printf 'all ready after %.1f s\n' "$(echo "$(date +%s.%N) $began" | awk '{print $1-$2}')"
"$NOMADLIKE" operator raft list-peers
"$NOMADLIKE" node status

say "train a network on handwritten digits over three nodes: website/examples/digits-ddp.hcl"
share website/examples
checkpoints=$(shared_dir checkpoints)
"$NOMADLIKE" job run -logs -var "examples=$dir/shared/examples" -var "checkpoints=$checkpoints" \
  website/examples/digits-ddp.hcl >"$dir/job.out" 2>"$dir/job.err" &
job=$!
wait_for 120 "the first epochs" grep -q 'epoch 5 ' "$dir/job.out"
cat "$dir/job.out"

victim=$("$NOMADLIKE" job inspect -t '{{range .Allocations}}{{if and (eq .Rank 1) (eq .Status "running")}}{{.NodeName}}{{end}}{{end}}' digits-ddp)
say "machine $victim, which runs rank 1, dies now"
seen=$(wc -l <"$dir/job.out")
host_kill "$victim"
status=0
wait $job || status=$?
tail -n +$((seen + 1)) "$dir/job.out"

say "what happened"
"$NOMADLIKE" job history digits-ddp
"$NOMADLIKE" node status
if ((status != 0)); then
  echo "the job ended with $status" >&2
  exit 1
fi
accuracy=$(grep -oE 'held-out accuracy [0-9.]+' "$dir/job.out" | awk '{print $3}' | tail -1)
attempt=$(grep -oE 'in attempt [0-9]+' "$dir/job.out" | awk '{print $3}' | tail -1)
resumed=$(grep -oE 'attempt 2: .*' "$dir/job.out" | head -1)
printf '\n%s\naccuracy on held-out digits: %s, finished in attempt %s\n' "$resumed" "$accuracy" "$attempt"
awk -v a="$accuracy" -v n="$attempt" 'BEGIN { exit !(a > 0.95 && n >= 2) }' || { echo "expected accuracy above 0.95 in attempt 2 or later" >&2; exit 1; }
keep=false
say "the web pages"
# A person's own token, by which the pages are signed in to.
token=$("$NOMADLIKE" token create -role admin -user demo -name demo | grep -oE 'nl_[a-z]+_[a-z2-7]+')
printf 'address:  https://%s:%s/jobs\nsign in:  %s\n' "$(host_addr s1)" "$(host_port s1)" "$token"
[[ -e $pages ]] || echo "(the pages themselves are not built: scripts/ui.sh does, with Node)"
echo "The certificate is of this cluster's own authority: the browser asks once."
if $stay; then
  # Something to look at: a training that goes on, and one that waits for it.
  files=(-var "examples=$dir/shared/examples" -var "checkpoints=$(shared_dir again)" -var epochs=100000)
  "$NOMADLIKE" job fmt -set '#=digits-long' -set resources.cpu=1.5 -set time_limit=2h - <website/examples/digits-ddp.hcl >"$dir/long.hcl"
  "$NOMADLIKE" job fmt -set '#=digits-next' - <"$dir/long.hcl" >"$dir/next.hcl"
  for name in long next; do "$NOMADLIKE" job run -detach "${files[@]}" "$dir/$name.hcl"; done
  say "the cluster stays up until Ctrl-C"
  trap 'exit 0' INT TERM
  sleep infinity &
  wait $! || true
fi
echo "It ends now; scripts/demo.sh --keep leaves it up until Ctrl-C."
say "done"
