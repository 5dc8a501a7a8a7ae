#!/usr/bin/env bash
# Checks that the Go toolchain is there and new enough. Nothing is installed: distributions are
# behind, so where it comes from is for you to say.
set -eu
cd "$(dirname "$0")/../.."
want=$(sed -n 's/^go //p' go.mod)
if ! command -v go >/dev/null; then
	echo "missing: Go $want or newer. Get it from https://go.dev/dl/ and put its bin directory on PATH." >&2
	exit 1
fi
have=$(go env GOVERSION)
have=${have#go}
if [ "$(printf '%s\n%s\n' "$want" "${have%%-*}" | sort -V | head -n 1)" != "$want" ]; then
	echo "missing: Go $want or newer; here is $have. Get it from https://go.dev/dl/." >&2
	exit 1
fi
