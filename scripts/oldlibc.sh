#!/usr/bin/env bash
# Makes libraries to link the nvidia plugin with, that look like those of an old
# glibc and hold no code: the plugin then asks for versions of functions that every
# distribution in use has, whatever the machine has that builds it.
#
#   scripts/oldlibc.sh OUT [ARCH]
#
# The compiler is $CC, or cc; it must make programs of ARCH.
set -euo pipefail
out=$1 arch=${2:-$(go env GOARCH)} cc=${CC:-cc} here=$(cd "$(dirname "$0")/.." && pwd)/plugins/host/libc
case $arch in amd64 | arm64) ;; *) echo "oldlibc: $arch is not known" >&2; exit 1 ;; esac
rm -rf "$out" && mkdir -p "$out"
declare -A sonames=([c]=libc.so.6 [dl]=libdl.so.2 [pthread]=libpthread.so.0)
for library in c dl pthread; do
  source=$out/$library.S versions=$out/$library.map
  : >"$versions"
  echo '.section .note.GNU-stack,"",%progbits' >"$source"
  for version in 2.2.5 2.3.2 2.3.3; do
    names=$(awk -v l="$library" -v v="$version" '$1 !~ /^#/ && $2 == l && $3 == v { print $1 }' "$here/symbols")
    [[ $arch == arm64 || -z $names ]] || echo "GLIBC_$version { global: ${names//$'\n'/; }; };" >>"$versions"
  done
  if [[ $arch == arm64 ]]; then
    names=$(awk -v l="$library" '$1 !~ /^#/ && $2 == l { print $1 }' "$here/symbols")
    echo "GLIBC_2.17 { global: ${names//$'\n'/; }; };" >>"$versions"
  fi
  awk -v l="$library" '$1 ~ /^#/ || $2 != l { next }
    $4 == "DATA" { printf ".data\n.globl %s\n.type %s,%%object\n.size %s,8\n%s: .quad 0\n", $1, $1, $1, $1; next }
    { printf ".text\n.globl %s\n.type %s,%%function\n%s: .byte 0,0,0,0\n.size %s,4\n", $1, $1, $1, $1 }' "$here/symbols" >>"$source"
  "$cc" -shared -nostdlib -Wl,-soname,"${sonames[$library]}" -Wl,--version-script,"$versions" -o "$out/lib$library.so" "$source"
done
"$cc" -c -o "$out/start.o" "$here/start-$arch.S"
