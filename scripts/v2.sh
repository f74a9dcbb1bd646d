#!/usr/bin/env bash
# Boots a small machine that has cgroups of version 2 alone, and quotas, and runs
# the tests of the exec driver and of quotas in it: Debian's cloud kernel in qemu, without hardware
# support, with the programs of this machine. Needs an amd64 Debian; root and
# the network only to install qemu and to fetch the kernel, which is kept. The first
# argument is a pattern of tests, "." for all; those after it are suites: supervisor,
# proctree, diskquota, exec; without any all run. V2_SKIP is a pattern of tests that
# are left out. Ends with the result of the tests, after V2_LIMIT seconds at the
# latest.
set -euo pipefail
cd "$(dirname "$0")/.."
pattern=${1:-.}
suites=("${@:2}")
((${#suites[@]})) || suites=(supervisor proctree diskquota exec)
limit=${V2_LIMIT:-2400}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nomadlike-v2
[[ "$(dpkg --print-architecture 2>/dev/null)" == amd64 ]] || { echo "v2: needs an amd64 Debian" >&2; exit 1; }
scripts/packages.sh qemu-system-x86 busybox-static cpio

work=$(mktemp -d "${TMPDIR:-/tmp}/nomadlike-v2.XXXXXX")
trap 'rm -rf "$work"' EXIT

# kernel: the newest cloud kernel of the release, unpacked, not installed, or the one
# whose package was unpacked at V2_KERNEL, of an older release for instance.
kernel() {
  local package
  if [[ -n "${V2_KERNEL:-}" ]]; then
    echo "$V2_KERNEL"
    return
  fi
  package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-.*\)$/\1/p' | head -1)
  [[ -n "$package" ]] || { echo "v2: apt knows no linux-image-cloud-amd64: apt-get update" >&2; return 1; }
  if [[ ! -e "$cache/$package/ready" ]]; then
    rm -rf "${cache:?}/$package"
    mkdir -p "$cache/$package"
    (cd "$work" && apt-get -qq download "$package" 2>/dev/null) >&2
    dpkg-deb -x "$work"/"$package"_*.deb "$cache/$package"
    touch "$cache/$package/ready"
  fi
  echo "$cache/$package"
}

# programs DIR: what the tests call, as it is on this machine, with libraries.
programs() {
  local dir=$1 package link
  mkdir -p "$dir"/{usr,etc,proc,sys,dev,run,tmp,root,home,opt,mnt,var/tmp,v2}
  chmod 1777 "$dir/tmp" "$dir/var/tmp"
  for link in bin sbin lib lib64; do
    mkdir -p "$dir/usr/$link"
    ln -s "usr/$link" "$dir/$link"
  done
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
  printf 'hosts: files\npasswd: files\ngroup: files\n' >"$dir/etc/nsswitch.conf"
  printf '127.0.0.1 localhost\n' >"$dir/etc/hosts"
  echo v2 >"$dir/etc/hostname"
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
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 pts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=755 run /run
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t securityfs security /sys/kernel/security 2>/dev/null
busybox ip link set lo up
for module in overlay loop quota_tree quota_v2; do busybox insmod /v2/\$module.ko; done
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
echo "v2: failed=\$failed"
busybox poweroff -f
INIT
}

# What builds a program, which takes a compiler in the machine.
skip="^(TestContractWithSmallSupervisor${V2_SKIP:+|$V2_SKIP})\$"

make --no-print-directory supervisor
kernel=$(kernel)
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
for module in overlay loop quota_tree quota_v2; do cp "$(find "$kernel" -name "$module.ko")" "$machine/v2/"; done
second_program >"$machine/v2/init"
chmod 755 "$machine/v2/init"

mkdir -p "$initrd"/{bin,new}
cp /bin/busybox "$initrd/bin/busybox"
first_program >"$initrd/init"
chmod 755 "$initrd/init"
tar -C "$machine" --owner=0 --group=0 -cf "$initrd/root.tar" .
(cd "$initrd" && find . | cpio -o -H newc --quiet -R 0:0 >"$work/initrd.cpio")

echo "v2: booting $(basename "$kernel"), at most $limit s"
timeout --foreground "$limit" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m "${V2_MEMORY:-3072}" -nographic -no-reboot -nic none \
  -kernel "$kernel"/boot/vmlinuz-* -initrd "$work/initrd.cpio" -append "console=ttyS0 panic=-1 quiet" </dev/null |
  sed -u 's/\r$//' | tee "$work/log" || true
grep -q '^v2: failed=' "$work/log" || { echo "v2: the machine did not come to its end" >&2; exit 1; }
grep -q '^v2: failed=0' "$work/log"
