#!/usr/bin/env bash
# Boots the guest. Usage: boot.sh IMAGE DIR COMMAND. DIR is /host inside, where COMMAND runs under sh
# once the Docker daemon answers; its exit status is this script's. 124: the guest ended without one.
set -euo pipefail
image=$1 dir=$(realpath "$2") command=$3
changes=$(mktemp -u)
trap 'rm -f "$changes" "$dir/.guest-command" "$dir/.guest-status"' EXIT
printf '%s\n' "$command" >"$dir/.guest-command"
rm -f "$dir/.guest-status"
# Changes go to a file of their own: the image stays as it was built.
TMPDIR=/dev/shm timeout -k 10 "${GUEST_TIMEOUT:-600}" linux.uml "ubd0=$changes,$image" root=/dev/ubda rw init=/init mem=2048M \
	con0=null,fd:1 con=null ssl=null quiet "hostdir=$dir" || true
exit "$(cat "$dir/.guest-status" 2>/dev/null || echo 124)"
