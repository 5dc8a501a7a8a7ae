#!/usr/bin/env bash
# Makes the disk of the guest: busybox, Docker Engine of the distribution with its libraries, and the
# kernel's overlay module. Usage: image.sh IMAGE. As root, because mke2fs keeps the owners it finds.
set -euo pipefail
image=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

mkdir -p "$root"/{bin,sbin,dev,etc,host,lib,lib64,module,proc,root,run,sys,tmp} "$root"/usr/{bin,lib,sbin} "$root/var/lib"
cp /usr/bin/busybox "$root/bin/"
for applet in $(/usr/bin/busybox --list); do
	[ "$applet" = busybox ] || ln -s /bin/busybox "$root/bin/$applet"
done
for program in /usr/sbin/dockerd /usr/sbin/docker-proxy /usr/bin/docker-init /usr/bin/containerd /usr/bin/containerd-shim-runc-v2 /usr/sbin/runc; do
	[ -e "$program" ] || continue
	cp -L "$program" "$root/usr/sbin/"
	ldd "$program" 2>/dev/null | grep -oE '/[^ ]+' | while read -r library; do
		mkdir -p "$root$(dirname "$library")"
		[ -e "$root$library" ] || cp -L "$library" "$root$library"
	done || true
done
for program in dockerd docker-init containerd containerd-shim-runc-v2 runc; do
	[ -e "$root/usr/sbin/$program" ] || { echo "missing: $program of Docker Engine" >&2; exit 1; }
done
cp "$(find /usr/lib/uml/modules -name overlay.ko | sort | tail -n 1)" "$root/module/"
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$root/etc/passwd"
printf 'root:x:0:\ndocker:x:105:\n' >"$root/etc/group"
printf 'ID=guest\nPRETTY_NAME="Guest"\nVERSION_ID=1\n' >"$root/etc/os-release"
printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
ln -s /run "$root/var/run"
install -m 755 "$(dirname "$0")/init.sh" "$root/init"

rm -f "$image"
truncate -s 2G "$image"
mke2fs -q -t ext4 -d "$root" "$image"
