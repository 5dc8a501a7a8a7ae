#!/usr/bin/env bash
# The main job from end to end: a real tool over this repository's HEAD, then three commands that
# misbehave; every attempt queried, exported and verified. Needs bin/baildock, git, Go and a Docker
# daemon; `make demo` sees to them.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
top=$PWD
out=$top/demo
export BAILDOCK_HOME=$out/.baildock
export PATH=$top/bin:$PATH

say() { printf '\n\033[1m# %s\033[0m\n' "$*" | if [ -t 1 ]; then cat; else sed 's/\x1b\[[0-9]*m//g'; fi; }
type_() { printf '$ %s\n' "$*"; }

# runs a command and checks its exit code: expect CODE COMMAND…
expect() {
	local want=$1 got=0
	shift
	type_ "$@"
	"$@" || got=$?
	if [ "$got" != "$want" ]; then
		echo "the demo expected exit code $want, got $got" >&2
		exit 1
	fi
	[ "$got" = 0 ] || echo "(exit code $got, as it should be)"
}

rm -rf "$out"
mkdir -p "$out/bin"

say "A home: ledger, keys, and ledger.pub for whoever verifies"
expect 0 baildock init

say "Images of local files; nothing is pulled"
gofmt=$(go env GOROOT)/bin/gofmt
# A program that needs a loader would not run alone in an image.
if [ ! -x "$gofmt" ] || ldd "$gofmt" >/dev/null 2>&1; then
	echo "this distribution's gofmt is missing or not static: building the same from its source"
	gofmt=$out/bin/gofmt
	CGO_ENABLED=0 go build -trimpath -o "$gofmt" cmd/gofmt
fi
CGO_ENABLED=0 go build -trimpath -o "$out/bin/misbehave" ./test/demo/misbehave
expect 0 baildock image make baildock-demo-gofmt --add "$gofmt:/bin/gofmt"
expect 0 baildock image make baildock-demo-misbehave --add "$out/bin/misbehave:/bin/misbehave"

say "gofmt over this repository's HEAD"
# gofmt opens up to 200 files at once, a thread each when the machine is busy; a contained command
# has 128 descriptors. So it gets as many directories as hold 100 files between them.
dirs=() files=0
for dir in cmd export ledger projections evidence executor; do
	n=$(git ls-tree -r --name-only HEAD "$dir" | grep -c '\.go$' || true)
	if [ $((files + n)) -le 100 ]; then
		dirs+=("/source/$dir") files=$((files + n))
	fi
done
[ "$files" -gt 0 ] || { echo "no directory is small enough for gofmt here" >&2; exit 1; }
format=(--pids 256 -- /bin/gofmt -l "${dirs[@]}")
accept=()
run() { expect "$1" baildock run --attempt "$2" --image "$3" --source .@HEAD "${accept[@]}" "${@:4}"; }

# What this daemon can't do in full is said, and accepted by name; a full claim needs no flag.
code=0
first=(baildock run --attempt format --image baildock-demo-gofmt --source .@HEAD "${format[@]}")
type_ "${first[@]}"
"${first[@]}" || code=$?
if [ "$code" = 4 ]; then
	read -ra accept <<<"$(baildock why format | grep -o -- '--accept-reduced [a-z0-9-]*' | tr '\n' ' ')"
	[ "${#accept[@]}" -gt 0 ] || { echo "this daemon is refused: see the reason above" >&2; exit 1; }
	say "This daemon can't give the full claim: the demo goes on with ${accept[*]}"
	run 0 format-reduced baildock-demo-gofmt "${format[@]}"
	good=format-reduced
elif [ "$code" = 0 ]; then
	good=format
else
	exit 1
fi

say "A command that fails, one that takes too long, one that floods its output"
run 1 fails baildock-demo-misbehave -- /bin/misbehave exit 3
run 5 sleeps baildock-demo-misbehave --timeout 1s -- /bin/misbehave sleep 1h
run 5 floods baildock-demo-misbehave --output-limit 64k -- /bin/misbehave flood

say "What the ledger holds"
expect 0 baildock query attempts

say "Each attempt as a signed bundle, verified offline"
for attempt in "$good" fails sleeps floods; do
	expect 0 baildock export "$attempt" -o "$out/$attempt.cbor"
	type_ baildock verify "$out/$attempt.cbor" --key "$BAILDOCK_HOME/ledger.pub"
	baildock verify "$out/$attempt.cbor" --key "$BAILDOCK_HOME/ledger.pub" | sed -n 1p
	baildock report "$out/$attempt.cbor" --key "$BAILDOCK_HOME/ledger.pub" -o "$out/$attempt.txt"
done

say "No key is not checked; one flipped byte is bad evidence"
expect 8 baildock --quiet inspect "$out/$good.cbor" | tail -n 1
size=$(stat -c %s "$out/$good.cbor")
cp "$out/$good.cbor" "$out/flipped.cbor"
byte=$(od -An -tu1 -j $((size / 2)) -N 1 "$out/$good.cbor" | tr -d ' ')
printf "\\x$(printf %02x $((byte ^ 1)))" | dd of="$out/flipped.cbor" bs=1 seek=$((size / 2)) conv=notrunc status=none
flipped=0
baildock verify "$out/flipped.cbor" --key "$BAILDOCK_HOME/ledger.pub" >"$out/flipped.txt" || flipped=$?
sed -n 1p "$out/flipped.txt"
[ "$flipped" = 7 ] || { echo "the demo expected exit code 7, got $flipped" >&2; exit 1; }

say "The report of $good"
sed -n 1,20p "$out/$good.txt"
echo "…"

say "Where things lie"
cat <<TXT
bundles  $(cd "$out" && echo *.cbor)   in $out
reports  $(cd "$out" && echo *.txt)
key      $BAILDOCK_HOME/ledger.pub

Type next:
  export BAILDOCK_HOME=$BAILDOCK_HOME PATH=$top/bin:\$PATH
  baildock why floods
  baildock check show $good --explain
  baildock report $out/$good.cbor --key $BAILDOCK_HOME/ledger.pub
  baildock replay attempt-$good
TXT
