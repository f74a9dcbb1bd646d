#!/bin/sh
# Before a removal ($1 is "remove" of dpkg or 0 of rpm), and not before an update.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl --no-reload disable --now nomadlike || true
	fi
	;;
esac
