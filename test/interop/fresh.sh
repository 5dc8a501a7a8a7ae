#!/usr/bin/env bash
# Makes bundles with the program itself, without a daemon, for other verifiers: fresh.sh PROGRAM DIRECTORY
# A run that finds no daemon ends as `unavailable`, which is recorded and exported like any outcome.
set -eu
program=$(realpath "$1")
mkdir -p "$2"
cd "$2"
unset BAILDOCK_HOME BAILDOCK_LEDGER BAILDOCK_KEY_PASSWORD
export XDG_STATE_HOME=$PWD/state
mkdir -p src
echo text >src/a.txt
attempt() { # HOME ID
	local code=0
	"$program" --home "$1" run --quiet --image "sha256:$(printf '01%.0s' {1..32})" --source src \
		--docker-socket "$PWD/none.sock" --attempt "$2" --env NAME=value -- /bin/tool >/dev/null || code=$?
	[ "$code" = 4 ] || { echo "run ended with $code, not 4" >&2; exit 1; }
}
baildock() { "$program" --home home "$@" >/dev/null; }
baildock init
attempt home one
baildock export one -o one.cbor --sigstore
baildock checkpoint show -o kept
attempt home two
baildock export one two -o both.cbor --prove-from kept
baildock export two -o less.cbor --withhold recipe,env
printf '%s\n' 'sandbox:' '  type: docker' "  image: sha256:$(printf '01%.0s' {1..32})" 'contained_execution:' '  version: 1' \
	'  environment:' '    - name: MODE' '      value: batch' '  policy:' '    max_files: 3' >agent.yaml
"$program" --home home contained-run agent.yaml --quiet --source src --docker-socket "$PWD/none.sock" --attempt agent -- /bin/agent >/dev/null 2>&1 || [ $? = 4 ]
baildock export agent -o agent.cbor
baildock export agent -o salts.cbor --disclose salts
baildock key generate bundle -o second.pem
baildock key add bundle second.pem
baildock export two -o rotated.cbor
cp home/ledger.pub ledger.pub
"$program" --home other init >/dev/null
attempt other one
"$program" --home other export one -o other.cbor >/dev/null
"$program" --home other checkpoint show -o other.kept
cp other/ledger.pub other.pub
