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
#   machine_disk N               the name that disk N, from 0, has there
#   machine_boot KERNEL INITRD LIMIT LINE [DISK...]  boots a directory as the memory that
#                                the machine begins with, shows what it says, and ends with
#                                the status in its line "machine: ended with N", or 124
#                                after LIMIT seconds. LINE is what its kernel is told besides
#                                where it speaks. A DISK is a file, or snapshot:FILE for
#                                one that stays as it is.
#
# Where the processor can run a machine it does (kvm): /dev/kvm can be opened and the
# processor has virtualization of its own; a kernel that offers /dev/kvm without it
# (PVM) starts only machines whose kernel knows it. Else there are two ways. The whole
# kernel runs as a program of this machine (uml, user-mode Linux): one processor at full
# speed, system calls at a tenth of it; it lacks some of what other kernels have
# (cpuset, Landlock, nftables, pressure). Or qemu emulates a processor (tcg), which
# takes many times as long. MACHINE_ACCEL=kvm, uml or tcg decides. MACHINE_MEMORY is the
# machine's memory in MiB.
set -euo pipefail

MACHINE_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/nomadlike-v2
[[ "$(dpkg --print-architecture 2>/dev/null)" == amd64 ]] || { echo "machine: needs an amd64 Debian" >&2; exit 1; }

if [[ -z "${MACHINE_ACCEL:-}" ]]; then
  MACHINE_ACCEL=tcg
  [[ "${MACHINE_WHOLE:-}" != 1 ]] || MACHINE_ACCEL=uml
  if grep -qE '^flags.* (vmx|svm)( |$)' /proc/cpuinfo && [[ -c /dev/kvm ]] && (: <>/dev/kvm) 2>/dev/null; then MACHINE_ACCEL=kvm; fi
fi

machine_needs() {
  local runs=qemu-system-x86
  [[ $MACHINE_ACCEL != uml ]] || runs="gcc libc6-dev"
  scripts/packages.sh $runs busybox-static cpio kmod "$@"
}

machine_kernel() {
  local package name work
  if [[ -n "${MACHINE_KERNEL:-}" ]]; then
    echo "$MACHINE_KERNEL"
    return
  fi
  if [[ $MACHINE_ACCEL == uml ]]; then
    package=user-mode-linux
    name=uml-$(apt-cache policy $package | sed -n 's/^ *Candidate: //p')
  else
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-.*\)$/\1/p' | head -1)
    name=$package
  fi
  [[ -n "$package" && "$name" != uml- && "$name" != "uml-(none)" ]] || { echo "machine: apt knows no linux-image-cloud-amd64 or user-mode-linux: apt-get update" >&2; return 1; }
  if [[ ! -e "$MACHINE_CACHE/$name/ready" ]]; then
    rm -rf "${MACHINE_CACHE:?}/$name"
    mkdir -p "$MACHINE_CACHE/$name"
    work=$(mktemp -d "${TMPDIR:-/tmp}/nomadlike-kernel.XXXXXX")
    (cd "$work" && apt-get -qq download "$package" 2>/dev/null) >&2
    dpkg-deb -x "$work"/"$package"_*.deb "$MACHINE_CACHE/$name"
    rm -rf "$work"
    if [[ $MACHINE_ACCEL == uml ]]; then
      mkdir -p "$MACHINE_CACHE/$name"/{lib,boot}
      mv "$MACHINE_CACHE/$name/usr/lib/uml/modules" "$MACHINE_CACHE/$name/lib/"
      mv "$MACHINE_CACHE/$name/usr/bin/linux.uml" "$MACHINE_CACHE/$name/boot/"
      rm -rf "$MACHINE_CACHE/$name/usr"
    fi
    # Before anybody copies the modules.
    /sbin/depmod -b "$MACHINE_CACHE/$name" "$(basename "$MACHINE_CACHE/$name"/lib/modules/*)"
    touch "$MACHINE_CACHE/$name/ready"
  fi
  echo "$MACHINE_CACHE/$name"
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

machine_disk() {
  local letters=abcdefgh
  if [[ $MACHINE_ACCEL == uml ]]; then echo "ubd${letters:$1:1}"; else echo "vd${letters:$1:1}"; fi
}

# machine_emulated and machine_user_mode run the machine: KERNEL INITRD LIMIT LINE [DISK...].
machine_emulated() {
  local kernel=$1 initrd=$2 limit=$3 line=$4 accel=(-accel kvm -cpu host -smp 2) disk
  shift 4
  [[ $MACHINE_ACCEL == kvm ]] || accel=(-accel tcg,thread=multi -cpu max -smp 2)
  for disk in "$@"; do
    if [[ $disk == snapshot:* ]]; then disk="${disk#snapshot:},snapshot=on"; fi
    accel+=(-drive "file=$disk,format=raw,if=virtio")
  done
  exec timeout --foreground "$limit" nice -n 5 qemu-system-x86_64 "${accel[@]}" -m "${MACHINE_MEMORY:-3072}" -nographic -no-reboot -nic none \
    -kernel "$kernel"/boot/vmlinuz-* -initrd "$initrd.cpio" -append "console=ttyS0 panic=-1 $line"
}

machine_user_mode() {
  local kernel=$1 initrd=$2 limit=$3 line=$4 disks=() disk
  shift 4
  cc -O2 -shared -fPIC -o "$initrd.so" scripts/inside/xstate.c
  for disk in "$@"; do
    if [[ $disk == snapshot:* ]]; then disk="$initrd.cow${#disks[@]},${disk#snapshot:}"; fi
    disks+=("ubd${#disks[@]}=$disk")
  done
  LD_PRELOAD="$initrd.so" exec timeout --foreground "$limit" "$kernel/boot/linux.uml" "mem=${MACHINE_MEMORY:-3072}M" "initrd=$initrd.cpio" "${disks[@]}" \
    con=null con0=null,fd:1 panic=-1 $line 2>&1
}

machine_boot() {
  local kernel=$1 initrd=$2 limit=$3 run=machine_emulated status
  case $MACHINE_ACCEL in
  uml) run=machine_user_mode ;;
  tcg) echo "machine: the processor is emulated, for it runs no machines by itself here: many times as slow" ;;
  esac
  (cd "$initrd" && find . | cpio -o -H newc --quiet -R 0:0) >"$initrd.cpio"
  echo "machine: booting $(basename "$kernel") ($MACHINE_ACCEL), at most $limit s"
  status=0
  ($run "$@") </dev/null |
    sed -u 's/\r$//' | tee "$initrd.log" || status=$?
  ((status != 124)) || { echo "machine: not at its end after $limit s" >&2; return 124; }
  status=$(sed -n 's/^machine: ended with \([0-9]*\)$/\1/p' "$initrd.log" | tail -1)
  [[ -n "$status" ]] || { echo "machine: it did not come to its end" >&2; return 1; }
  return "$status"
}
