#!/usr/bin/env bash
# Makes sure that a Docker daemon answers on the default socket: installs Docker Engine from the
# distribution and starts it, where it may; else says what is missing. Needs bin/baildock.
set -eu
cd "$(dirname "$0")/../.."
socket=/var/run/docker.sock
answers() { bin/baildock --quiet image list >/dev/null 2>&1; }
# Tests look at the daemon from outside with Docker's own command line.
cli() { command -v docker >/dev/null || test/setup/install.sh docker-cli; }
answers && { cli; exit 0; }

if [ "$(id -u)" != 0 ]; then
	echo "missing: a Docker daemon that answers you on $socket." >&2
	echo "Start Docker Engine, and join the group that owns the socket or become root." >&2
	exit 1
fi
command -v dockerd >/dev/null || test/setup/install.sh docker.io iptables

log=/var/log/baildock-dockerd.log
if [ -d /run/systemd/system ]; then
	echo "starting Docker Engine with systemd" >&2
	systemctl start docker
else
	echo "starting dockerd; its log is $log" >&2
	setsid dockerd >"$log" 2>&1 </dev/null &
fi
for _ in $(seq 60); do
	answers && { cli; exit 0; }
	sleep 1
done
echo "the Docker daemon does not answer on $socket:" >&2
bin/baildock --quiet image list >&2 || true
[ ! -f "$log" ] || tail -n 20 "$log" >&2
exit 1
