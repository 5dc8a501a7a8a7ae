"""Runs the golden vectors of test/conformance that verify.py can see. It prints how many it ran and left out."""

import json
import os

import verify

# Spellings that only show once it is known which keys a map may have and of which kind each value is. verify.py knows
# that of events and of what it reads itself, not of every kind of value.
SHAPE_ONLY = ("unknown key", "negative key", "text as bytes", "bytes as text", "null for a string")


def verdict(run):
    """accept or refuse, with what came out."""
    try:
        return "accept", run()
    except verify.NotChecked:
        return "newer", None
    except (verify.Invalid, ValueError, KeyError, TypeError, IndexError, UnicodeError) as e:
        return "refuse", str(e)


def leaf(i):
    e = verify.Event({1: 0, 2: bytes.fromhex(i["cbor"]), 3: []})
    return {"leaf": e.hash.hex(), "id": e.hash[:16].hex(), "stream": e.stream, "version": e.version, "type": e.type,
            "time": e.time, "prev": e.prev.hex(), "media": e.media, "meta": e.meta.hex(), "data": e.body.hex()}


def root_of(leaves):
    if not leaves:
        return verify.sha256()
    if len(leaves) == 1:
        return leaves[0]
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return verify.node(root_of(leaves[:k]), root_of(leaves[k:]))


def chain(i):
    heads, hashes = {}, []
    for raw in i["leaves"]:
        e = verify.Event({1: len(hashes), 2: bytes.fromhex(raw), 3: []})
        version, prev = heads.get(e.stream, (0, b""))
        if (e.version, e.prev) != (version, prev):
            raise ValueError("the chain is broken")
        heads[e.stream] = version + 1, e.hash
        hashes.append(e.hash)
    return {"size": len(hashes), "root": root_of(hashes).hex()}


def tree(i):
    if "proof" not in i:
        return {"root": root_of([verify.sha256(b"\x00", str(n).encode()) for n in range(i["size"])]).hex()}
    proof, root = [bytes.fromhex(p) for p in i["proof"]], bytes.fromhex(i["root"])
    if not verify.index(i["size"]):
        raise ValueError("size out of range")
    if "leaf" in i:
        if i["index"] >= i["size"]:
            raise ValueError("index outside the tree")
        if verify.root_from_inclusion(bytes.fromhex(i["leaf"]), i["index"], i["size"], proof) != root:
            raise ValueError("another root")
        return {}
    old, old_root = i["old_size"], bytes.fromhex(i["old_root"])
    if old in (0, i["size"]):  # what needs no proof
        if proof or old_root != (root if old else verify.sha256()):
            raise ValueError("not of one history")
        return {}
    verify.consistent(old, old_root, i["size"], root, proof)
    return {}


def checkpoint(i):
    size, root = verify.open_note(i["note"].encode(), i["origin"], [bytes.fromhex(k) for k in i["keys"]], False)
    return {"size": size, "root": root.hex()}


def identity(i):
    known, key = verify.parse_trust(i["text"])
    if known is None:
        return {"bundle": key.hex()}
    return {"id": known[1].hex(), "origin": known[2], "bundle": known[3].hex(), "checkpoint": known[4].hex()}


def encoding(i):
    b = bytes.fromhex(i["cbor"])
    verify.decode(b, simple=True)
    return {"digest": "sha256:" + verify.sha256(b).hex()}


def digest(i):
    if "salt" in i:
        salt, b = bytes.fromhex(i["salt"]), bytes.fromhex(i["bytes"])
        d = verify.encode({1: salt, 2: len(b), 3: verify.sha256(b), 4: verify.sha256(b)})
        return {"salted": verify.sha256(salt, b).hex(), "descriptor_cbor": d.hex(), "descriptor": verify.sha256(d).hex()}
    if "globs" in i:
        return {"paths": "sha256:" + verify.sha256(verify.encode(["baildock.path-policy.v1", i["globs"]])).hex()}

    def raw(name):
        return bytes.fromhex(i[name]) if name in i else None

    bound = "change" in i
    p = verify.encode([
        "baildock.execution-request.v1", i["attempt"], i["generation"], raw("repository"), i.get("change"),
        i["version"] if bound else None, raw("context"), raw("manifest") or i["commit"], raw("recipe"), raw("toolchain"),
        raw("environment"), raw("profile")])
    return {"preimage": p.hex(), "request": verify.sha256(p).hex()}


def event(i):
    data = bytes.fromhex(i["data"])
    raw = verify.encode([1, "a", 0, i["type"], 0, b"", "application/cbor", bytes.fromhex(i["meta"]), data])
    verify.Event({1: 0, 2: raw, 3: []}).open()
    return {"sha256": verify.sha256(data).hex()}


RUN = {"leaves": leaf, "chains": chain, "trees": tree, "checkpoints": checkpoint, "identities": identity,
       "encodings": encoding, "digests": digest, "events": event}


def left_out(name, v):
    """Whether a refused vector shows only what verify.py doesn't look at."""
    if name == "encodings":
        return v["kind"] == "range" or any(v["name"].endswith(": " + s) for s in SHAPE_ONLY)
    return False


def bundle(directory, i):
    def read(name):
        with open(os.path.join(directory, name), "rb") as f:
            return f.read()

    if "base" in i:
        base = read(i["base"])
        file = b"".join(bytes.fromhex(p) if isinstance(p, str) else base[p[0] : p[0] + p[1]] for p in i["parts"])
    else:
        file = read(i["file"])
    return verify.verdict(file, read(i["trust"]).decode(), i["kept"].encode() if "kept" in i else None)


def run(cases, repository, unseen):
    directory = os.path.join(repository, "test", "conformance", "vectors")
    total, out, behind = 0, 0, 0
    for name in sorted(os.listdir(directory)):
        name, extension = os.path.splitext(name)
        if extension != ".json" or name == "witnesses":
            continue
        with open(os.path.join(directory, name + ".json"), encoding="utf-8") as f:
            vectors = json.load(f)["vectors"]
        if not vectors:
            raise ValueError("no vectors in " + name)
        for v in vectors:
            label = "vector %s: %s" % (name, v["name"])
            if name == "bundles":
                if "allow" in v["input"] or "trust" not in v["input"]:
                    out += 1  # it knows no policy
                    continue
                got = bundle(directory, v["input"])
                if v["class"] == "invalid" and got[0] == "valid" and unseen & set(v["input"]["checks"]):
                    out += 1
                    continue
                if v.get("kind") == "withheld":
                    got = ("not_checked",) + got[1:] if got[0] == "valid" else got  # what is missing it lists, and leaves to its reader
                cases.expect(label, v["class"], got)
            else:
                got = verdict(lambda: RUN[name](v["input"]))
                if name == "events" and v["class"] != "newer" and v["input"]["type"] not in verify.SHAPES:
                    behind += 1
                    continue
                if v["class"] == "refuse" and got[0] == "accept" and left_out(name, v):
                    out += 1
                    continue
                wanted = v.get("output", {}) if v["class"] == "accept" else {}
                same = got[0] != "accept" or all(got[1][k] == x for k, x in wanted.items() if k in got[1])
                cases.expect(label, v["class"], (got[0] if same else "other values", "", got[1]))
            total += 1
    print("%d golden vectors run, %d show what this verifier doesn't look at, %d are of event types it doesn't know" % (total, out, behind))
    if total < 1500:
        raise ValueError("vectors are missing")
