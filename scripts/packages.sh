#!/usr/bin/env bash
# Installs the Debian packages named as arguments, those that are missing, and
# says so. Sourced and run by the other scripts; can be run twice.
set -euo pipefail

missing=()
for package in "$@"; do
  if ! dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed'; then
    missing+=("$package")
  fi
done
if ((${#missing[@]} == 0)); then
  echo "packages: all present ($*)"
  exit 0
fi
if ((EUID != 0)); then
  echo "packages: missing ${missing[*]}; install them as root: apt-get install ${missing[*]}" >&2
  exit 1
fi
echo "packages: installing ${missing[*]} (a few minutes on a new machine)"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "packages: done"
