#!/usr/bin/env bash
# Tools of other makers that verify bundles: openssl and xxd.
set -eu
missing=
for tool in openssl xxd; do command -v $tool >/dev/null || missing="$missing $tool"; done
[ -z "$missing" ] || "$(dirname "$0")/install.sh" $missing
