#!/usr/bin/env bash
# A contained run of the scripted agent from nothing: an image of local files, a repository, the run, its
# evidence exported and verified. Needs git, Go, Docker, and baildock in PATH.
#
#     examples/agent/run.sh [PLAN [DIRECTORY]]
#
# PLAN is mend (the default), look, careless, nosy or spoof; DIRECTORY is made, and stays.
# ACCEPT names reductions to accept, as in ACCEPT=cgroup-v1. It exits like the run.
set -eu -o pipefail
plan=${1:-mend}
out=${2:-$(mktemp -d)/agent}
here=$(cd "$(dirname "$0")" && pwd)
[ ! -e "$out/project" ] || { echo "$out holds an earlier run: name another directory" >&2; exit 2; }
mkdir -p "$out"
out=$(cd "$out" && pwd)
export BAILDOCK_HOME=$out/home
accept=()
for reason in ${ACCEPT:-}; do accept+=(--accept-reduced "$reason"); done

say() { printf '\n# %s\n' "$*"; }

say "an image of local files; nothing is pulled"
(cd "$here" && CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$out/agent" .)
image=$(baildock image make baildock-example-agent --add "$out/agent:/bin/agent" | tail -n 1)
echo "$image"

say "a repository, and its configuration"
cp -R "$here/project" "$out/project"
uid=1000 gid=1000
# Only root can hand the copy to somebody else.
if [ "$(id -u)" != 0 ]; then uid=$(id -u) gid=$(id -g); fi
sed -e "s/^  image: .*/  image: $image/" -e "s/^  required_uid: .*/  required_uid: $uid/" \
	-e "s/^  required_gid: .*/  required_gid: $gid/" "$here/baildock.yaml" >"$out/project/baildock.yaml"
cd "$out/project"
git init -q -b main
git add .
git -c user.name=example -c user.email=example@example.org commit -q -m "A greeting with one mistake"

say "the run"
[ -d "$BAILDOCK_HOME" ] || baildock init
got=0
baildock contained-run "${accept[@]}" --tee baildock.yaml --patch "$out/agent.patch" -- /bin/agent "$plan" || got=$?
echo "exit code $got"

say "its evidence, for somebody who wasn't there"
baildock export @last -o "$out/run.cbor"
baildock verify "$out/run.cbor" --key "$BAILDOCK_HOME/ledger.pub" --source .
if [ "$got" = 0 ] && [ -s "$out/agent.patch" ]; then
	say "the agent's patch, for a person to read and apply"
	cat "$out/agent.patch"
	git apply --check "$out/agent.patch"
fi
exit "$got"
