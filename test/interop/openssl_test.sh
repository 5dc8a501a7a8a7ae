#!/usr/bin/env bash
# Holds openssl.sh to good bundles and bent ones: openssl_test.sh REPOSITORY FRESH
set -euo pipefail
repository=$1 fresh=$2
here=$(dirname "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0
expect() { # WANTED NAME BUNDLE KEY
	local got=refused
	if "$here/openssl.sh" "$3" "$4" >"$dir/said" 2>&1; then got=accepted; fi
	if [ "$got" = "$1" ]; then passed=$((passed + 1)); else
		failed=$((failed + 1))
		echo "FAILED $2: $got, wanted $1: $(cat "$dir/said")"
	fi
}
golden=$repository/export/testdata/one.bundle pub=$repository/export/bundle/testdata/ledger.pub
expect accepted golden "$golden" "$pub"
for f in one both less agent; do expect accepted $f "$fresh/$f.cbor" "$fresh/ledger.pub"; done
expect refused "another ledger's key" "$fresh/one.cbor" "$fresh/other.pub"
expect refused "the retired key's successor" "$fresh/rotated.cbor" "$fresh/ledger.pub"
expect refused "no bundle" "$pub" "$pub"
size=$(stat -c %s "$golden")
for at in 0 1 2 3 5 20 60 100 $((size / 3)) $((size / 2)) $((size - 67)) $((size - 66)) $((size - 65)) $((size - 64)) $((size - 40)) $((size - 1)); do
	cp "$golden" "$dir/bent"
	byte=$(xxd -s "$at" -l 1 -p "$golden")
	printf "\\x$(printf %02x $((16#$byte ^ 1)))" | dd of="$dir/bent" bs=1 seek="$at" conv=notrunc status=none
	expect refused "byte $at" "$dir/bent" "$pub"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
