#!/bin/sh
# After an installation or an update. An agent that runs goes on with the program
# that it was started with, until somebody restarts it.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	if systemctl -q is-active nomadlike; then
		echo "nomadlike: the agent still runs the program before; restart it with: systemctl restart nomadlike (tasks go on)"
	fi
fi
