#!/bin/sh
# Inside the guest: runs on a daemon with cgroup v2. No reduction is accepted anywhere.
set -eu
export BAILDOCK_HOME=/root/home
quiet="./baildock --quiet"
$quiet init
$quiet image make busybox --add /bin/busybox:/bin/busybox >/dev/null
mkdir /tmp/source
echo content >/tmp/source/file
code() {
	name=$1
	shift
	got=0
	$quiet run --image busybox --source /tmp/source --timeout 60s "$@" || got=$?
	echo "$name $got" >>codes
}
: >codes
code full -- /bin/busybox cat /source/file
$quiet export @last -o full.cbor
cp $BAILDOCK_HOME/ledger.pub .
code memory --memory 32m -- /bin/busybox tail /dev/zero
code fork --pids 16 -- /bin/busybox sh -c 'i=0; while [ $i -lt 40 ]; do /bin/busybox sleep 2 & i=$((i + 1)); done; wait'
$quiet audit
$quiet supervise --once
echo "containers $(ls /var/lib/docker/containers | wc -l)" >>codes
cat codes
