#!/usr/bin/env bash
# A run with a full claim on a cgroup v2 daemon, in a guest of its own: from an image of local files to
# verified evidence, the last step on this side. Usage: check.sh BAILDOCK WORK
set -euo pipefail
baildock=$(realpath "$1") work=$2
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work"
mkdir -p "$work/host"
cp "$baildock" "$work/host/baildock"
cp "$here/inside.sh" "$work/host/"
"$here/image.sh" "$work/disk"
"$here/boot.sh" "$work/disk" "$work/host" 'sh inside.sh'

passed=0 failed=0
check() {
	if "${@:2}"; then passed=$((passed + 1)); else
		failed=$((failed + 1))
		echo "FAILED: $1" >&2
	fi
}
verified=$("$baildock" verify "$work/host/full.cbor" --key "$work/host/ledger.pub" --require success --json)
said() { grep -q "$1" <<<"$verified"; }
check "the bundle verifies outside the guest" said '"verdict": "valid"'
check "its outcome is success" said '"outcome": "success"'
check "its claim is full" said '"claim": "full"'
check "the flood is stopped at its processes" grep -qx 'fork 1' "$work/host/codes"
check "memory past its bound is no verdict" grep -qx 'memory 5' "$work/host/codes"
check "a verified guest leaves no container" grep -qx 'containers 0' "$work/host/codes"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
