#!/usr/bin/env bash
# Installs Debian packages, where that is possible without asking; else says what is missing.
set -eu
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || ! grep -qsE '^(ID|ID_LIKE)=.*debian' /etc/os-release; then
	echo "missing: $*. On Debian, as root: apt-get install $*; elsewhere install the same from your distribution." >&2
	exit 1
fi
echo "installing from the distribution: $*" >&2
export DEBIAN_FRONTEND=noninteractive
{ apt-get update -q && apt-get install -yq --no-install-recommends "$@"; } >&2 </dev/null
