"""Holds verify.py to bundles that Baildock made and to the hostile corpus.

    test_verify.py REPOSITORY CORPUS FRESH

CORPUS is what `go test ./export/verify -run TestHostileCorpus -corpus DIR` wrote, FRESH a directory with
bundles of the program itself. Every case counts; the last line says how many passed and failed.
"""

import os
import sys

import test_vectors
from verify import verdict

# What this verifier doesn't do: fold histories and derive records. An attack that only those see is no
# failure of it; every other one is.
UNSEEN = {"history", "record", "claim", "admission"}


class Cases:
    def __init__(self):
        self.passed, self.failed = 0, 0

    def expect(self, name, want, got):
        if got[0] == want:
            self.passed += 1
            return
        self.failed += 1
        print("FAILED %s: %s, wanted %s (%s: %s)" % (name, got[0], want, got[1], got[2]))


def read(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def pub(*path):
    return read(*path).decode()


def golden(cases, repository):
    """The checked-in bundle, and a sample of its flipped bits."""
    file = read(repository, "export", "testdata", "one.bundle")
    trust = pub(repository, "export", "bundle", "testdata", "ledger.pub")
    cases.expect("golden bundle", "valid", verdict(file, trust))
    first = trust[trust.index("-----BEGIN") :].split("-----END PUBLIC KEY-----\n")[0] + "-----END PUBLIC KEY-----\n"
    cases.expect("golden bundle under the bare key", "valid", verdict(file, first))
    step = len(file) * 8 // 2000 * 2 + 1
    for bit in range(0, len(file) * 8, step):
        bent = bytearray(file)
        bent[bit // 8] ^= 1 << bit % 8
        cases.expect("golden bundle, bit %d" % bit, "invalid", verdict(bytes(bent), trust))


def fresh(cases, directory):
    """What the program exported just now, with what it says of other ledgers' keys."""
    ours, theirs = pub(directory, "ledger.pub"), pub(directory, "other.pub")
    kept = read(directory, "kept")
    for name in ("one.cbor", "both.cbor", "less.cbor", "agent.cbor", "salts.cbor", "rotated.cbor"):
        file = read(directory, name)
        cases.expect(name, "valid", verdict(file, ours))
        cases.expect(name + " under another ledger's keys", "invalid", verdict(file, theirs))
    cases.expect("a checkpoint kept, proved", "valid", verdict(read(directory, "both.cbor"), ours, kept))
    cases.expect("a checkpoint kept, same size", "valid", verdict(read(directory, "one.cbor"), ours, kept))
    cases.expect("a checkpoint kept, no proof", "not_checked", verdict(read(directory, "less.cbor"), ours, kept))
    cases.expect("another ledger's checkpoint", "invalid", verdict(read(directory, "one.cbor"), ours, read(directory, "other.kept")))


def hostile(cases, directory):
    """The corpus: every attack that needs no folding of histories is refused."""
    for name in ("good.bundle", "approved.bundle"):
        cases.expect("the corpus' " + name, "valid", verdict(read(directory, name), pub(directory, "ledger.pub")))
    tried, unseen = 0, []
    for line in pub(directory, "index.tsv").splitlines():
        file, checks, trust, kept, name = line.split("\t")
        got = verdict(read(directory, file), pub(directory, trust), None if kept == "-" else read(directory, kept))
        tried += 1
        if got[0] == "valid" and UNSEEN & set(checks.split(",")):
            unseen.append(name)
            continue
        cases.expect(name, "invalid", got)
    if tried < 150 or len(unseen) > 25:
        cases.failed += 1
        print("FAILED corpus: %d attacks, %d of them unseen" % (tried, len(unseen)))
    print("%d attacks, %d refused, %d seen only by who folds histories:" % (tried, tried - len(unseen), len(unseen)))
    for name in unseen:
        print("  " + name)


def main():
    repository, corpus, directory = sys.argv[1:]
    cases = Cases()
    golden(cases, repository)
    fresh(cases, directory)
    hostile(cases, corpus)
    test_vectors.run(cases, repository, UNSEEN)
    print("%d passed, %d failed" % (cases.passed, cases.failed))
    sys.exit(1 if cases.failed or not cases.passed else 0)


if __name__ == "__main__":
    main()
