#!/usr/bin/env bash
# The browser that reports are looked at in.
set -eu
command -v chromium >/dev/null || "$(dirname "$0")/install.sh" chromium
