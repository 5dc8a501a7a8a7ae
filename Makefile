# Targets and what they need are in CONTRIBUTING.md. On a fresh Debian machine, as root, a target
# installs and starts what it needs from the distribution; elsewhere it says what is missing.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

# The revision is stamped where git can tell it; a clone owned by somebody else can't.
VCS := $(shell git status >/dev/null 2>&1 && echo auto || echo false)
export GOFLAGS := $(GOFLAGS) -buildvcs=$(VCS)

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

# Packages whose goroutines meet: tested with the race detector. The others are without it.
RACE := ./ledger/... ./evidence/journal/... ./executor/... ./projections/...

# What the go command says only with its exit code must not be lost on the way to the tally.
BROKE := echo '{"Action":"fail","Package":"go test"}'

.PHONY: build demo test test-full test-live test-interop test-browser test-kurrentdb test-guest lint vuln bench clean

build:
	@test/setup/go.sh
	CGO_ENABLED=0 go build -trimpath -o bin/baildock ./cmd/baildock

demo: build
	@test/setup/docker.sh
	@test/demo/demo.sh

test:
	@test/setup/go.sh
	@test/setup/cc.sh
	@{ go test -json $$(go list ./... | grep -vxF "$$(go list $(RACE))" | grep -v '/test/arch$$') || $(BROKE); \
	   go test -json -race $(RACE) || $(BROKE); \
	   go test -json -run '^TestUnraced' ./ledger/kurrentdb ./executor/warden || $(BROKE); } | go run ./test/tally

# Every cell of the tables whose short forms run in `test` and `test-live`.
test-full: build
	@test/setup/cc.sh
	@test/setup/docker.sh
	@{ BAILDOCK_FULL=1 go test -json -tags live -timeout 90m ./test/faults || $(BROKE); } | go run ./test/tally

test-live: build
	@test/setup/docker.sh
	@{ go test -json -tags live -p 1 -run '^TestLive' ./... || $(BROKE); } | go run ./test/tally

# The ledger's suite against a real EventStoreDB or KurrentDB cluster. `make test` runs it against a peer.
test-kurrentdb:
	@test/setup/go.sh
	@[ -n "$${BAILDOCK_TEST_KURRENTDB:-}" ] || { echo "BAILDOCK_TEST_KURRENTDB names no cluster, like esdb://admin:changeit@localhost:2113?tls=true"; exit 1; }
	@{ go test -json -tags kurrentdb -count=1 -timeout 30m -run '^TestRealCluster' ./ledger/kurrentdb || $(BROKE); } | go run ./test/tally

# Verifiers that others wrote, or that were written from the format alone, on what the program exports.
INTEROP := bin/interop
test-interop: build
	@test/setup/interop.sh
	@rm -rf $(INTEROP)
	@test/interop/fresh.sh bin/baildock $(INTEROP)/fresh
	@go test ./export/verify -run '^TestHostileCorpus$$' -count=1 -corpus "$$PWD/$(INTEROP)/corpus" >$(INTEROP)/log || { cat $(INTEROP)/log; exit 1; }
	@"$$(test/setup/python.sh)" test/interop/python/test_verify.py . $(INTEROP)/corpus $(INTEROP)/fresh
	@test/interop/openssl_test.sh . $(INTEROP)/fresh
	@cd test/interop/sigstore && go vet ./...
	@{ BAILDOCK="$$PWD/bin/baildock" go -C test/interop/sigstore test -json -count=1 ./... || $(BROKE); } | go run ./test/tally
	@rm -rf $(INTEROP)

# Reports in a real browser.
test-browser:
	@test/setup/go.sh
	@test/setup/chromium.sh
	@{ go test -json -tags browser -count=1 -run '^TestBrowser' ./export/report || $(BROKE); } | go run ./test/tally

# A daemon with cgroup v2, in a guest that needs no such host and no KVM: a full claim. Wants a quiet machine.
test-guest: build
	@test/setup/guest.sh
	@test/guest/check.sh bin/baildock bin/guest

lint:
	@test/setup/go.sh
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi
	go vet ./...
	go vet -tags live,browser,kurrentdb ./...
	go run $(STATICCHECK) -tags live,browser,kurrentdb ./...
	@{ go test -json ./test/arch || $(BROKE); } | go run ./test/tally

vuln:
	@test/setup/go.sh
	go run $(GOVULNCHECK) ./...

bench: build
	@test/setup/docker.sh
	go test -run '^$$' -bench . -benchtime 1x ./test/bench
	go test -run '^$$' -bench . $$(go list ./... | grep -v /test/)

clean:
	rm -rf bin demo
