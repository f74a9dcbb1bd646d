#!/usr/bin/env bash
# Runs the demonstration, five minutes of the nemesis, or what systemd does with the
# agent's unit, in a machine that has cgroups of version 2 alone: see machine.sh.
#
#   scripts/inside.sh demo|nemesis|SCRIPT [bare|slices] [--plant NAME]
#   scripts/inside.sh unit
#
# bare: a shell is the first process, and nothing else makes cgroups. slices: systemd
# is, and all agents are processes of a service as scripts/nomadlike.service is one.
# unit: that service itself, started, restarted, killed and stopped while a task runs.
# SCRIPT is any other file with a slash in its name, run in a copy of scripts, examples
# and binaries. --plant builds a known defect into the agent that the nemesis attacks, and
# the run must find it. Ends with the result of what runs there; of a run that failed the logs are
# kept on this machine. The machine's disk is made from the packages that are
# installed here and kept (2 GB) until one of them changes. NOMADLIKE names an agent that
# is built already. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
usage() { sed -n 's/^#   \(scripts.*\)/usage: \1/p' scripts/inside.sh >&2; exit 2; }
suite=${1:-} layout=bare plant=()
shift || usage
if [[ "${1:-}" == bare || "${1:-}" == slices ]]; then layout=$1 && shift; fi
if [[ "${1:-}" == --plant && -n "${2:-}" && $suite == nemesis ]]; then plant=(-plant "$2") && shift 2; fi
(($# == 0)) || usage
case $suite in
demo | nemesis) ;;
unit) layout=slices ;;
*/*) [[ -r "$suite" ]] || usage ;;
*) usage ;;
esac
((EUID == 0)) || { echo "inside: needs root, to copy programs with their owners" >&2; exit 1; }
MACHINE_WHOLE=1 # all of it, people included, within its times
source scripts/machine.sh
limit=1200
[[ $MACHINE_ACCEL == kvm ]] || limit=7200

# What the machine's programs come from, with all that these depend on.
packages=(busybox-static e2fsprogs iproute2 iptables kmod mawk mount passwd procps python3-sklearn python3-torch strace systemd)
mapfile -t essential < <(dpkg-query -W -f '${Essential} ${Package}\n' | sed -n 's/^yes //p')
packages+=("${essential[@]}")
machine_needs "${packages[@]}"

work=$(mktemp -d "${TMPDIR:-/tmp}/nomadlike-inside.XXXXXX")
trap 'rm -rf "$work"' EXIT
kernel=$(machine_kernel)

# disk: the file of the machine's disk; it is made when there is none of these packages.
disk() {
  local key file root=$work/root
  apt-cache depends --recurse --installed --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "${packages[@]}" |
    grep -v '^[ <|]' | sort -u >"$work/closure"
  xargs -a "$work/closure" dpkg-query -W -f '${Package} ${Version}\n' >"$work/versions" 2>/dev/null || true
  key=$(cat "$work/versions" <(basename "$kernel"; declare -f disk machine_base) | sha256sum | cut -c1-16)
  file=$MACHINE_CACHE/inside-$key.ext4
  if [[ -e "$file" ]]; then
    echo "$file"
    return
  fi
  echo "inside: making the machine's disk from $(wc -l <"$work/versions") packages" >&2
  rm -f "$MACHINE_CACHE"/inside-*.ext4*
  machine_base "$root"
  # What packages list, but for what nobody reads there, and the choices among them.
  { cut -d' ' -f1 "$work/versions" | xargs dpkg-query -L 2>/dev/null || true; } |
    grep -E '^/(etc|bin|sbin|lib|lib64|usr|var/lib)/' |
    grep -vE '^/usr/(include|share/(doc|man|info|locale|lintian|bug|icons))/|\.a$' |
    sed -E 's#^/(bin|sbin|lib|lib64)/#/usr/\1/#' | sort -u >"$work/listed"
  {
    while read -r path; do
      if [[ -f "$path" || -L "$path" ]]; then echo "$path"; fi
    done <"$work/listed"
    find /etc/alternatives -type l
    find /usr/bin /usr/sbin /usr/lib/x86_64-linux-gnu -lname '/etc/alternatives/*'
    echo /var/lib/dpkg/status
  } | grep -vE '^/etc/(hosts|hostname|nsswitch.conf|fstab)$' | tar -C / --no-recursion -cf - --files-from=- 2>/dev/null | tar -C "$root" -xf -
  # Python's compiled files belong to no package.
  (cd "$root" && find usr/lib/python3* -type d) | while read -r path; do
    if [[ -d "/$path/__pycache__" ]]; then echo "$path/__pycache__"; fi
  done | tar -C / -cf - --files-from=- | tar -C "$root" -xf -
  mkdir -p "$root"/var/{log,cache,spool} "$root/etc/nomadlike.d"
  cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
  cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
  sed 's/:.*/:*:19000:0:99999:7:::/' "$root/etc/passwd" >"$root/etc/shadow"
  chmod 600 "$root/etc/shadow"
  systemd-sysusers --root="$root" >&2
  : >"$root/etc/fstab"
  echo 00000000000000000000000000000070 >"$root/etc/machine-id"
  /sbin/ldconfig -r "$root"
  cp -a "$kernel"/lib/modules "$root/usr/lib/"
  /sbin/mke2fs -q -t ext4 -d "$root" "$file.new" 6G >&2
  rm -rf "$root"
  mv "$file.new" "$file"
  echo "$file"
}

# first_program is what runs out of the memory that the machine is booted with.
first_program() {
  cat <<INIT
#!/bin/busybox sh
/bin/busybox mkdir -p /proc /dev
/bin/busybox mount -t devtmpfs dev /dev
for module in $modules; do /bin/busybox insmod /\$module; done
until [ -b /dev/$(machine_disk 1) ]; do /bin/busybox usleep 10000; done
/bin/busybox mount -t ext4 /dev/$(machine_disk 0) /new
/bin/busybox tar -xf /files.tar -C /new && /bin/busybox rm /files.tar
/bin/busybox umount /dev
exec /bin/busybox switch_root /new $init
INIT
}

bare_program() {
  cat <<INIT
#!/bin/sh
$(machine_mounts)
hostname v2
exec </dev/null
ulimit -n 1048576
/src/run
busybox poweroff -f
INIT
}

# run_program is what the machine is for. It leaves a disk that holds the logs.
run_program() {
  cat <<RUN
#!/bin/bash
ln -s $(machine_disk 1) /dev/logs
RUN
  cat <<'RUN'
set -uo pipefail
export PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin HOME=/root LANG=C.UTF-8 NOMADLIKE=/src/bin/nomadlike HOSTS_CGROUPS=1
cd /src
{
  echo "inside: $(uname -r), first process $(cat /proc/1/comm), this one in $(cut -d: -f3 /proc/self/cgroup), $(nproc) processors, $(awk '/MemTotal/ {print int($2/1024)}' /proc/meminfo) MiB"
RUN
  case $suite in
  demo) echo '  scripts/demo.sh' ;;
  nemesis) echo "  bin/nemesis -binary bin/attacked -cgroups -seed 1 -pace $pace $attacks" ;;
  unit) echo '  scripts/inside/unit.sh' ;;
  *) echo '  bash /src/script' ;;
  esac
  cat <<'RUN'
  status=$?
  if ((status != 0)); then
    [[ ! -d /run/systemd/system ]] || journalctl -b --no-pager >/tmp/journal.log
    find /tmp /dev/shm -xdev -type f -size -16M \( -path '/tmp/nemesis-*' -o -name '*.log' -o -name 'job.*' \) -print0 |
      tar -czf /dev/logs --null --files-from=- 2>/dev/null
  fi
  sync
  echo "machine: ended with $status"
} 2>&1 | cat >/dev/console
RUN
  [[ $layout == bare ]] || echo 'systemctl poweroff --force --force'
}

# service FILE: the agent's own service with another program, so that whatever this
# starts has its group, its limits and what is delegated to it.
service() {
  sed -E 's#^ExecStart=.*#ExecStart=/src/run#; s#^Type=.*#Type=exec#; /^(ExecReload|Restart|RestartSec|Wants|After)=/d' scripts/nomadlike.service >"$1"
}

[[ -n "${NOMADLIKE:-}" ]] || make --no-print-directory build
files=$work/files initrd=$work/initrd
mkdir -p "$files"/src/bin "$files"/usr/local/bin "$files"/etc/systemd/system "$initrd"/{bin,new}
git ls-files scripts website/examples | tar -cf - --files-from=- | tar -C "$files/src" -xf -
cp "${NOMADLIKE:-bin/nomadlike}" "$files/src/bin/nomadlike"
pace=1 attacks=
[[ $MACHINE_ACCEL == kvm ]] || pace=8
if [[ $suite == nemesis ]]; then
  CGO_ENABLED=0 go build -o "$files/src/bin/nemesis" ./scripts/nemesis
  attacks="-minutes 5"
  known=$("$files/src/bin/nemesis" -build "$files/src/bin/attacked" "${plant[@]}")
  read -r faults finds <<<"$known" || true
  [[ -z "$faults" ]] || attacks="-minutes 1 -only $faults" # what brings the defect to light
fi
[[ $suite != */* ]] || cp "$suite" "$files/src/script"
run_program >"$files/src/run"
bare_program >"$files/src/init"
chmod 755 "$files"/src/{run,init}
init=/src/init
if [[ $layout == slices ]]; then
  init=/usr/lib/systemd/systemd
  name=nomadlike
  [[ $suite != unit ]] || name=inside
  service "$files/etc/systemd/system/$name.service"
  printf '[Unit]\nRequires=basic.target %s.service\nAfter=basic.target\n' $name >"$files/etc/systemd/system/inside.target"
fi
file=$(disk)
modules=
if [[ $MACHINE_ACCEL == uml ]]; then
  ln -s /usr/sbin/iptables-legacy "$files/usr/local/bin/iptables" # its kernel has no nftables
else
  modules=$(machine_modules "$kernel" "$initrd" virtio_pci virtio_blk | tr '\n' ' ')
fi
cp /bin/busybox "$initrd/bin/busybox"
first_program >"$initrd/init"
chmod 755 "$initrd/init"
tar -C "$files" --owner=0 --group=0 -cf "$initrd/files.tar" .
truncate -s 1G "$work/out"

status=0
began=$SECONDS
MACHINE_MEMORY=${MACHINE_MEMORY:-6144} machine_boot "$kernel" "$initrd" "$limit" \
  "loglevel=4 systemd.unit=inside.target systemd.show_status=0 systemd.unified_cgroup_hierarchy=1" "snapshot:$file" "$work/out" || status=$?
echo "inside: $suite ($layout) ended with $status after $((SECONDS - began)) s"
if ((${#plant[@]})); then
  if ((status == 1)) && grep -qE "BROKEN ($finds)\b" "$initrd.log"; then
    echo "inside: the defect ${plant[1]} was found"
    exit 0
  fi
  echo "inside: the defect ${plant[1]} was not found" >&2
  ((status != 0)) || status=3
fi
if ((status != 0)); then
  kept=$(mktemp -d "${TMPDIR:-/tmp}/nomadlike-inside-logs.XXXXXX")
  tar -C "$kept" -xzf "$work/out" 2>/dev/null || true
  cp "$initrd.log" "$kept/console.log"
  echo "inside: logs are in $kept" >&2
fi
exit "$status"
