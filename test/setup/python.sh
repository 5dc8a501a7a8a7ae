#!/usr/bin/env bash
# Prints a Python that has cbor2 and cryptography; installs the distribution's where it may.
set -eu
for python in python3 /usr/bin/python3; do
	"$python" -c 'import cbor2, cryptography' 2>/dev/null && { echo "$python"; exit 0; }
done
"$(dirname "$0")/install.sh" python3 python3-cbor2 python3-cryptography
/usr/bin/python3 -c 'import cbor2, cryptography' >&2
echo /usr/bin/python3
