#!/bin/sh
# The guest's first process: file systems, a cgroup v2 tree with every controller, a Docker daemon
# without a network, then the command that the host left in its directory.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
for place in /dev/shm /run /tmp; do mount -t tmpfs tmpfs $place; done
tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
insmod /module/overlay.ko
ip link set lo up

# Only this shell moves: a kernel thread below the root keeps the cpu controller from being enabled,
# and a daemon in the root cgroup reports no swap limit.
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir /sys/fs/cgroup/init
echo $$ >/sys/fs/cgroup/init/cgroup.procs
for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
	echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
done

for word in $(cat /proc/cmdline); do
	case $word in hostdir=*) hostdir=${word#hostdir=} ;; esac
done
mount -t hostfs none /host -o "$hostdir"

dockerd --iptables=false --ip6tables=false --bridge=none >/run/dockerd.log 2>&1 &
i=0
while ! grep -q "API listen on /var/run/docker.sock" /run/dockerd.log && [ $i -lt 300 ]; do
	sleep 0.2
	i=$((i + 1))
done
status=125
if grep -q "API listen on /var/run/docker.sock" /run/dockerd.log; then
	cd /host || exit
	sh ./.guest-command
	status=$?
fi
[ $status = 0 ] || tail -n 20 /run/dockerd.log
echo $status >/host/.guest-status
sync
poweroff -f
