#!/usr/bin/env bash
# What the guest is made of and boots with: a User-Mode Linux kernel, busybox, mke2fs, Docker Engine.
set -eu
missing=
need() { [ -e "$1" ] || missing="$missing $2"; }
need /usr/bin/linux.uml user-mode-linux
need /usr/bin/busybox busybox-static
need /sbin/mke2fs e2fsprogs
need /usr/sbin/dockerd docker.io
need /usr/bin/docker-init tini
[ -z "$missing" ] || "$(dirname "$0")/install.sh" $missing
[ "$(id -u)" = 0 ] || { echo "missing: root, because mke2fs keeps the owners it finds" >&2; exit 1; }
