#!/bin/sh
# Installs nomadlike from an unpacked archive, on a machine that needs no internet:
#
#   ./install.sh [--prefix DIR]     program below DIR/bin; /usr/local unless told
#
# It checks the files beside it against their sums, replaces the program in one
# step, adds the systemd unit, and starts nothing. It can be run again: an agent that
# runs goes on with its program until it is restarted. DESTDIR puts everything below
# another root.
set -eu

prefix=/usr/local
while [ $# -gt 0 ]; do
	case "$1" in
	--prefix)
		[ $# -gt 1 ] || { echo "install.sh: --prefix needs a directory" >&2; exit 2; }
		prefix=$2
		shift 2
		;;
	--prefix=*)
		prefix=${1#--prefix=}
		shift
		;;
	*)
		echo "install.sh: unknown argument $1; usage: ./install.sh [--prefix DIR]" >&2
		exit 2
		;;
	esac
done
case "$prefix" in
/*) ;;
*) echo "install.sh: --prefix $prefix is not an absolute path" >&2; exit 2 ;;
esac
root=${DESTDIR:-}

cd "$(dirname "$0")"
sha256sum --quiet -c SHA256SUMS || { echo "install.sh: files beside this script are not those of the release: unpack the archive again" >&2; exit 1; }
mkdir -p "$root$prefix/bin" 2>/dev/null && [ -w "$root$prefix/bin" ] || { echo "install.sh: $root$prefix/bin cannot be written to: run it as root, or give --prefix" >&2; exit 1; }

# A program that runs cannot be written to, but its name can be given to another.
cp nomadlike "$root$prefix/bin/.nomadlike.new"
chmod 755 "$root$prefix/bin/.nomadlike.new"
mv -f "$root$prefix/bin/.nomadlike.new" "$root$prefix/bin/nomadlike"
echo "installed $root$prefix/bin/nomadlike"

if [ -e nomadlike.service ] && { [ "$(id -u)" = 0 ] || [ -n "$root" ]; }; then
	mkdir -p "$root/etc/systemd/system"
	[ -d "$root/etc/nomadlike.d" ] || mkdir -m 750 "$root/etc/nomadlike.d"
	sed "s,/usr/local/bin/,$prefix/bin/," nomadlike.service >"$root/etc/systemd/system/.nomadlike.service.new"
	chmod 644 "$root/etc/systemd/system/.nomadlike.service.new"
	mv -f "$root/etc/systemd/system/.nomadlike.service.new" "$root/etc/systemd/system/nomadlike.service"
	echo "installed $root/etc/systemd/system/nomadlike.service; configuration goes into $root/etc/nomadlike.d"
	if [ -z "$root" ] && [ -d /run/systemd/system ]; then
		systemctl daemon-reload
		if systemctl -q is-active nomadlike; then
			echo "the agent still runs the program before; restart it with: systemctl restart nomadlike (tasks go on)"
		else
			echo "start the agent with: systemctl enable --now nomadlike"
		fi
	fi
fi
