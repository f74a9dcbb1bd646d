#!/usr/bin/env bash
# A machine of its own for tests: Debian's cloud kernel in qemu, with cgroups of
# version 2 alone. Sourced by v2.sh and inside.sh. Needs an amd64 Debian; root and the
# network only to install qemu and to fetch the kernel, which is kept.
#
#   machine_needs [PACKAGE...]   what qemu, a first program and those who source this need
#   machine_kernel               the directory of the unpacked kernel package; MACHINE_KERNEL
#                                names another one, of an older release for instance
#   machine_modules KERNEL DIR MODULE...  modules with those they need, into DIR; prints
#                                their file names in the order in which they are loaded
#   machine_base DIR             directories and files that every root has
#   machine_mounts               the lines of a program that mount what systemd would
#   machine_boot KERNEL INITRD LIMIT [ARGUMENT...]  boots a directory as the memory that
#                                the machine begins with, shows what it says, and ends with
#                                the status in its line "machine: ended with N", or 124
#                                after LIMIT seconds. Arguments are qemu's.
#
# Where the processor can run a machine it does: /dev/kvm can be opened and the
# processor has virtualization of its own; a kernel that offers /dev/kvm without it
# (PVM) starts only machines whose kernel knows it. Else qemu emulates one, which takes
# many times as long. MACHINE_ACCEL=kvm or tcg overrides that. With MACHINE_TIME=counted an
# emulated machine's clock goes by the instructions that it has executed, a nanosecond
# each, so what has to happen in time does, however slow or busy this machine is.
# MACHINE_MEMORY is its memory in MiB.
set -euo pipefail

MACHINE_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/nomadlike-v2
[[ "$(dpkg --print-architecture 2>/dev/null)" == amd64 ]] || { echo "machine: needs an amd64 Debian" >&2; exit 1; }

if [[ -z "${MACHINE_ACCEL:-}" ]]; then
  MACHINE_ACCEL=tcg
  if grep -qE '^flags.* (vmx|svm)( |$)' /proc/cpuinfo && [[ -c /dev/kvm ]] && (: <>/dev/kvm) 2>/dev/null; then MACHINE_ACCEL=kvm; fi
fi

machine_needs() { scripts/packages.sh qemu-system-x86 busybox-static cpio kmod "$@"; }

machine_kernel() {
  local package work
  if [[ -n "${MACHINE_KERNEL:-}" ]]; then
    echo "$MACHINE_KERNEL"
    return
  fi
  package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-.*\)$/\1/p' | head -1)
  [[ -n "$package" ]] || { echo "machine: apt knows no linux-image-cloud-amd64: apt-get update" >&2; return 1; }
  if [[ ! -e "$MACHINE_CACHE/$package/ready" ]]; then
    rm -rf "${MACHINE_CACHE:?}/$package"
    mkdir -p "$MACHINE_CACHE/$package"
    work=$(mktemp -d "${TMPDIR:-/tmp}/nomadlike-kernel.XXXXXX")
    (cd "$work" && apt-get -qq download "$package" 2>/dev/null) >&2
    dpkg-deb -x "$work"/"$package"_*.deb "$MACHINE_CACHE/$package"
    rm -rf "$work"
    /sbin/depmod -b "$MACHINE_CACHE/$package" "${package#linux-image-}" # before anybody copies the modules
    touch "$MACHINE_CACHE/$package/ready"
  fi
  echo "$MACHINE_CACHE/$package"
}

machine_modules() {
  local kernel=$1 dir=$2 version word module
  shift 2
  version=$(basename "$kernel"/lib/modules/*)
  [[ -e "$kernel/lib/modules/$version/modules.dep" ]] || /sbin/depmod -b "$kernel" "$version" # MACHINE_KERNEL's own
  for module in "$@"; do
    /sbin/modprobe -d "$kernel" -S "$version" --show-depends "$module" | while read -r word module _; do
      [[ $word == insmod ]] || continue # "builtin"
      cp "$module" "$dir/"
      basename "$module"
    done
  done | awk '!seen[$0]++'
}

machine_base() {
  local dir=$1 link
  mkdir -p "$dir"/{usr,etc,proc,sys,dev,run,tmp,root,home,opt,mnt,var/tmp}
  chmod 1777 "$dir/tmp" "$dir/var/tmp"
  chmod 700 "$dir/root"
  for link in bin sbin lib lib64; do
    mkdir -p "$dir/usr/$link"
    ln -sfn "usr/$link" "$dir/$link"
  done
  printf 'hosts: files\npasswd: files\ngroup: files\n' >"$dir/etc/nsswitch.conf"
  printf '127.0.0.1 localhost\n' >"$dir/etc/hosts"
  echo v2 >"$dir/etc/hostname"
}

machine_mounts() {
  cat <<'LINES'
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
LINES
}

machine_boot() {
  local kernel=$1 initrd=$2 limit=$3 accel=(-accel kvm -cpu host -smp 2) status
  shift 3
  if [[ $MACHINE_ACCEL != kvm ]]; then
    accel=(-accel tcg,thread=multi -cpu max -smp 2)
    # A second processor that counts would not even come up.
    if [[ "${MACHINE_TIME:-}" == counted ]]; then accel=(-accel tcg,thread=single -icount shift=0 -rtc clock=vm -cpu max -smp 1); fi
    echo "machine: the processor is emulated, for it runs no machines by itself here: many times as slow"
  fi
  (cd "$initrd" && find . | cpio -o -H newc --quiet -R 0:0) >"$initrd.cpio"
  echo "machine: booting $(basename "$kernel") ($MACHINE_ACCEL), at most $limit s"
  status=0
  timeout --foreground "$limit" nice -n 5 qemu-system-x86_64 "${accel[@]}" -m "${MACHINE_MEMORY:-3072}" -nographic -no-reboot -nic none \
    -kernel "$kernel"/boot/vmlinuz-* -initrd "$initrd.cpio" "$@" </dev/null |
    sed -u 's/\r$//' | tee "$initrd.log" || status=$?
  ((status != 124)) || { echo "machine: not at its end after $limit s" >&2; return 124; }
  status=$(sed -n 's/^machine: ended with \([0-9]*\)$/\1/p' "$initrd.log" | tail -1)
  [[ -n "$status" ]] || { echo "machine: it did not come to its end" >&2; return 1; }
  return "$status"
}
