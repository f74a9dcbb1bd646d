#!/usr/bin/env bash
# Boots a small machine that has cgroups of version 2 alone, and quotas, and runs the
# tests of the exec driver and of quotas in it, with the programs of this machine:
# see machine.sh for what it needs. The first argument is a pattern of tests, "." for
# all; those after it are suites: supervisor, proctree, diskquota, exec; without any
# all run. V2_SKIP is a pattern of tests that are left out. Ends with the result of
# the tests, after V2_LIMIT seconds at the latest.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/machine.sh
pattern=${1:-.}
suites=("${@:2}")
((${#suites[@]})) || suites=(supervisor proctree diskquota exec)
limit=${V2_LIMIT:-2400}
machine_needs

work=$(mktemp -d "${TMPDIR:-/tmp}/nomadlike-v2.XXXXXX")
trap 'rm -rf "$work"' EXIT

# programs DIR: what the tests call, as it is on this machine, with libraries.
programs() {
  local dir=$1 package
  machine_base "$dir"
  mkdir -p "$dir/v2"
  for package in coreutils dash bash grep sed findutils util-linux bsdutils mount hostname procps mawk libc-bin perl-base \
    e2fsprogs python3.11-minimal libpython3.11-minimal libpython3.11-stdlib; do
    dpkg-query -L "$package" 2>/dev/null | grep -E '^/(usr/)?(bin|sbin|lib)/' || true
  done | sed 's#^/bin/#/usr/bin/#; s#^/sbin/#/usr/sbin/#; s#^/lib/#/usr/lib/#' | sort -u >"$work/files"
  printf '%s\n' /usr/bin/python3 /usr/bin/sh >>"$work/files"
  while read -r file; do
    if [[ -f "$file" || -L "$file" ]]; then echo "$file"; fi
  done <"$work/files" >"$work/there"
  while read -r file; do ldd "$file" 2>/dev/null || true; done < <(grep -E '/s?bin/|\.so' "$work/there") |
    grep -oE '/[^ ]+\.so[^ ]*' | sort -u | while read -r library; do
    echo "$library"
    readlink -f "$library"
  done | sed 's#^/lib#/usr/lib#' >>"$work/there"
  sort -u "$work/there" | tar -C / --no-recursion -cf - --files-from=- 2>/dev/null | tar -C "$dir" -xf -
  printf 'root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1::/:/bin/false\nnobody:x:65534:65534::/:/bin/false\n' >"$dir/etc/passwd"
  printf 'root:x:0:\ndaemon:x:1:\nnogroup:x:65534:\n' >"$dir/etc/group"
  printf 'root:*:19000:0:99999:7:::\n' >"$dir/etc/shadow"
  chmod 600 "$dir/etc/shadow"
  cp /bin/busybox "$dir/usr/bin/busybox"
}

# first_program and second_program are what the machine runs: one out of the
# memory that it is booted with, which no view can be made of, and one in a
# file system of its own.
first_program() {
  cat <<'INIT'
#!/bin/busybox sh
/bin/busybox mount -t tmpfs -o size=75%,mode=755 root /new
/bin/busybox tar -xf /root.tar -C /new && /bin/busybox rm /root.tar
exec /bin/busybox switch_root /new /v2/init
INIT
}

second_program() {
  cat <<INIT
#!/bin/sh
export PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin HOME=/root TMPDIR=/tmp
$(machine_mounts)
for module in $modules; do busybox insmod /v2/\$module; done
export NOMADLIKE_QUOTAS=1
hostname v2
ulimit -n 1024
echo "v2: \$(uname -r), controllers \$(cat /sys/fs/cgroup/cgroup.controllers), \$(nproc) processors"
failed=0
for suite in ${suites[*]}; do
  echo "v2: \$suite"
  cd /v2/\$suite
  { ./test -test.v -test.short -test.timeout ${limit}s -test.run '$pattern' -test.skip '$skip' </dev/null 2>&1; echo \$? >/v2/\$suite/status; } |
    grep --line-buffered -avE '^ *=== (RUN|PAUSE|CONT|NAME)'
  status=\$(cat /v2/\$suite/status)
  [ \$status = 0 ] || failed=1
  echo "v2: \$suite ended with \$status"
done
echo "machine: ended with \$failed"
busybox poweroff -f
INIT
}

# What builds a program, which takes a compiler in the machine.
skip="^(TestContractWithSmallSupervisor${V2_SKIP:+|$V2_SKIP})\$"

make --no-print-directory supervisor
kernel=$(machine_kernel)
machine="$work/machine" initrd="$work/initrd"
programs "$machine"
# of SUITE: its package.
of() {
  case "$1" in
  exec) echo ./plugins/exec ;;
  supervisor) echo ./plugins/exec/supervisor ;;
  proctree) echo ./internal/proctree ;;
  diskquota) echo ./nomadlike/client/diskquota ;;
  *) echo "v2: no suite is called $1: supervisor, proctree, diskquota, exec" >&2; return 1 ;;
  esac
}
for suite in "${suites[@]}"; do
  package=$(of "$suite")
  mkdir -p "$machine/v2/$suite"
  CGO_ENABLED=0 go test -c -o "$machine/v2/$suite/test" "$package"
done
modules=$(machine_modules "$kernel" "$machine/v2" overlay loop quota_tree quota_v2 | tr '\n' ' ')
second_program >"$machine/v2/init"
chmod 755 "$machine/v2/init"

mkdir -p "$initrd"/{bin,new}
cp /bin/busybox "$initrd/bin/busybox"
first_program >"$initrd/init"
chmod 755 "$initrd/init"
tar -C "$machine" --owner=0 --group=0 -cf "$initrd/root.tar" .
machine_boot "$kernel" "$initrd" "$limit" quiet
