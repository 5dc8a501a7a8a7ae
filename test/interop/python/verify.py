#!/usr/bin/env python3
"""Verifies a bundle with nothing of Baildock's own code: written from export/bundle/FORMAT.md,
ledger/FORMAT.md, evidence/FORMAT.md and schemas/*.cddl, on Debian's python3-cbor2 and
python3-cryptography.

    verify.py BUNDLE --key ledger.pub [--checkpoint FILE]

It checks envelope, signature, spelling, identity, the ledger's keys, checkpoint, kept checkpoint,
inclusion, streams and their completeness, the events' shape and spelling, the basis of each claim,
blobs, requests, recipes, manifests, control values and outputs. It doesn't fold histories nor derive
records; it says so. Exit 0: what it checks holds. 7: invalid.
8: not checked.
"""

import argparse
import base64
import hashlib
import re
import sys

import cbor2
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils

CONTENT_TYPE = "application/vnd.baildock.bundle+cbor"
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256
MAX_BUNDLE, MAX_PROTECTED, MAX_ITEMS, MAX_DEPTH, MAX_LIST = 64 << 20, 16 << 10, 1 << 20, 8, 1 << 17
MAX_JUDGED, MAX_STREAMS, MAX_EVENTS, MAX_PROOF, MAX_SCHEMAS, MAX_NAME = 64, 1024, 32768, 63, 32, 128
CLASSES = ("output", "recipe", "env", "source", "controls", "detail", "profile", "salts", "changes")


class Invalid(Exception):
    """The bundle breaks a rule: `check` is the step, the message says how."""

    def __init__(self, check, why):
        super().__init__(why)
        self.check = check


class NotChecked(Exception):
    """Something is newer than this verifier."""


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


# CBOR in its one spelling.


def scan(b, simple):
    """Walks the heads of one value: shortest forms, nothing indefinite, no tags, no floats, bounded."""
    stack, items, pos = [], 0, 0
    while True:
        items += 1
        if items > MAX_ITEMS or pos >= len(b):
            raise ValueError("too many items, or it ends too early")
        major, info, n = b[pos] >> 5, b[pos] & 31, 0
        pos += 1
        if info < 24:
            n = info
        elif info <= 27:
            width = 1 << (info - 24)
            if pos + width > len(b):
                raise ValueError("it ends too early")
            n = int.from_bytes(b[pos : pos + width], "big")
            pos += width
            if n < (24, 1 << 8, 1 << 16, 1 << 32)[info - 24]:
                raise ValueError("a head is longer than it need be")
        else:
            raise ValueError("indefinite or reserved length")
        children = 0
        if major in (2, 3):
            if n > len(b) - pos:
                raise ValueError("a string is longer than what follows")
            pos += n
        elif major in (4, 5):
            if n > MAX_LIST:
                raise ValueError("a list is too long")
            children = n * (major - 3)
        elif major == 7:
            if not simple or info not in (20, 21, 22):
                raise ValueError("a simple value or float")
        elif major == 6:
            raise ValueError("a tag")
        if children:
            if len(stack) == (16 if simple else MAX_DEPTH):
                raise ValueError("nested too deep")
            stack.append(children)
            continue
        while stack:
            stack[-1] -= 1
            if stack[-1]:
                break
            stack.pop()
        if not stack:
            if pos != len(b):
                raise ValueError("bytes behind the value")
            return


def encode(v):
    """Deterministic encoding, RFC 8949 section 4.2.1."""

    def head(major, n):
        for info, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
            if n < 24:
                return bytes([major << 5 | n])
            if n < 1 << (8 * width):
                return bytes([major << 5 | info]) + n.to_bytes(width, "big")
        raise ValueError("number out of range")

    if v is None or v is True or v is False:
        return {None: b"\xf6", True: b"\xf5", False: b"\xf4"}[v]
    if isinstance(v, int):
        return head(0, v) if v >= 0 else head(1, -1 - v)
    if isinstance(v, bytes):
        return head(2, len(v)) + v
    if isinstance(v, str):
        b = v.encode("utf-8")
        return head(3, len(b)) + b
    if isinstance(v, list):
        return head(4, len(v)) + b"".join(map(encode, v))
    if isinstance(v, dict):
        pairs = sorted((encode(k), encode(x)) for k, x in v.items())
        return head(5, len(pairs)) + b"".join(k + x for k, x in pairs)
    raise ValueError("a value of no known kind")


def decode(b, simple=False):
    scan(b, simple)
    v = cbor2.loads(b)
    if encode(v) != b:
        raise ValueError("not the one spelling of its value")
    return v


def shape(v, required, optional=()):
    """A map with exactly these keys; each key's rule is a type or a function."""
    if not isinstance(v, dict):
        raise ValueError("not a map")
    optional = dict(optional)
    if set(v) - set(required) - set(optional) or set(required) - set(v):
        raise ValueError("keys %s" % sorted(map(str, v)))
    for k, x in v.items():
        rule = required[k] if k in required else optional[k]
        ok = type(x) is rule if isinstance(rule, type) else rule(x)
        if not ok:
            raise ValueError("key %s has another shape" % k)
    return v


def size(n):
    return lambda x: type(x) is bytes and len(x) == n


def uint(x):
    return type(x) is int and 0 <= x < 1 << 64


def index(x):
    return uint(x) and x < 1 << 62


digest = size(32)
LIST = list


# Trust.


def is_origin(s):
    if not isinstance(s, str):
        return False
    return 1 <= len(s.encode()) <= 255 and not any(c.isspace() or ord(c) < 32 or 127 <= ord(c) < 160 or c == "+" for c in s)


def public_key(spki, kind):
    key = serialization.load_der_public_key(spki)
    want = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    if key.public_bytes(*want) != spki:
        raise ValueError("not the canonical DER of a key")
    if kind == "bundle":
        if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
            raise ValueError("a bundle key is ECDSA P-256")
    elif not isinstance(key, ed25519.Ed25519PublicKey):
        raise ValueError("a checkpoint key is Ed25519")
    return key


def pem(spki):
    text = base64.b64encode(spki).decode()
    lines = [text[i : i + 64] for i in range(0, len(text), 64)]
    return "-----BEGIN PUBLIC KEY-----\n%s\n-----END PUBLIC KEY-----\n" % "\n".join(lines)


def unpem(text):
    return base64.b64decode(re.sub(r"-----[A-Z ]+-----|\n", "", text))


def parse_trust(text):
    """Returns (identity or None, SPKI of the trusted bundle key)."""
    if not text.startswith("baildock-ledger/v1"):
        spki = unpem(text)
        public_key(spki, "bundle")
        if pem(spki) != text:
            raise ValueError("not exactly one PEM block")
        return None, spki
    lines = text.split("\n", 3)
    blocks = re.findall(r"-----BEGIN PUBLIC KEY-----\n.*?-----END PUBLIC KEY-----\n", lines[3], re.S)
    if len(blocks) != 2 or not re.fullmatch(r"id: [0-9a-f]{32}", lines[1]) or not lines[2].startswith("origin: "):
        raise ValueError("not a ledger.pub")
    bundle_key, checkpoint_key = map(unpem, blocks)
    public_key(bundle_key, "bundle")
    public_key(checkpoint_key, "checkpoint")
    identity = {1: bytes.fromhex(lines[1][4:]), 2: lines[2][8:], 3: bundle_key, 4: checkpoint_key}
    again = "baildock-ledger/v1\n%s\n%s\n%s%s" % (lines[1], lines[2], pem(bundle_key), pem(checkpoint_key))
    if again != text or not is_origin(identity[2]) or identity[1] == bytes(16):
        raise ValueError("ledger.pub is not in its exact form")
    return identity, bundle_key


class Keyring:
    """Folds the stream `ledger`."""

    def __init__(self):
        self.opened, self.live, self.retired = None, {"bundle": [], "checkpoint": []}, set()

    def find(self, role, kid):
        return next((k for k in self.live[role] if sha256(k) == kid), None)

    def endorsed(self, domain, role, key, endorser, signature):
        spki = self.find(role, endorser)
        if spki is None:
            raise ValueError("the endorser is no live key of the role")
        message = encode([domain, self.opened[1], role, key])
        try:
            if role == "bundle":
                public_key(spki, role).verify(signature, message, ec.ECDSA(hashes.SHA256()))
            else:
                public_key(spki, role).verify(signature, message)
        except InvalidSignature:
            raise ValueError("the endorser's signature doesn't hold") from None

    def apply(self, kind, e):
        if kind == "StreamSealed":
            return
        if kind == "LedgerOpened":
            if self.opened:
                raise ValueError("opened twice")
            shape(e, {1: size(16), 2: is_origin, 3: bytes, 4: bytes})
            public_key(e[3], "bundle")
            public_key(e[4], "checkpoint")
            if e[1] == bytes(16):
                raise ValueError("a ledger without an ID")
            self.opened, self.live = e, {"bundle": [e[3]], "checkpoint": [e[4]]}
            return
        if not self.opened or kind not in ("KeyAdded", "KeyRetired"):
            raise ValueError("%s doesn't belong here" % kind)
        shape(e, {1: lambda r: r in self.live, 2: bytes, 3: digest, 4: bytes})
        role, key = e[1], e[2]
        if kind == "KeyAdded":
            if key in self.live[role] or key in self.retired:
                raise ValueError("the key is live or was retired")
            public_key(key, role)
            self.endorsed("baildock.key-added.v1", role, key, e[3], e[4])
            self.live[role].append(key)
        else:
            if key not in self.live[role] or len(self.live[role]) == 1:
                raise ValueError("the key isn't live, or is the last")
            self.endorsed("baildock.key-retired.v1", role, key, e[3], e[4])
            self.live[role].remove(key)
            self.retired.add(key)


# Merkle tree, RFC 6962 and RFC 9162.


def node(left, right):
    return sha256(b"\x01", left, right)


def root_from_inclusion(leaf, i, n, proof):
    """RFC 9162 section 2.1.3.2."""
    fn, sn, r = i, n - 1, leaf
    for p in proof:
        if sn == 0:
            raise ValueError("the proof is too long")
        if fn & 1 or fn == sn:
            r = node(p, r)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = node(r, p)
        fn, sn = fn >> 1, sn >> 1
    if sn:
        raise ValueError("the proof is too short")
    return r


def consistent(first, first_root, second, second_root, proof):
    """RFC 9162 section 2.1.4.2."""
    if not 0 < first < second or not proof:
        raise ValueError("no proof, or sizes out of order")
    if first & (first - 1) == 0:
        proof = [first_root] + proof
    fn, sn = first - 1, second - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = proof[0]
    for c in proof[1:]:
        if sn == 0:
            raise ValueError("the proof is too long")
        if fn & 1 or fn == sn:
            fr, sr = node(c, fr), node(c, sr)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = node(sr, c)
        fn, sn = fn >> 1, sn >> 1
    if sn or fr != first_root or sr != second_root:
        raise ValueError("the two trees are not of one history")


def strict_base64(s):
    b = base64.b64decode(s, validate=True)
    if base64.b64encode(b).decode() != s:
        raise ValueError("base64 in another spelling")
    return b


def open_note(note, origin, keys, exactly_one):
    """Returns (size, root) of a signed checkpoint."""
    text, _, signatures = note.decode("utf-8").rpartition("\n\n")
    lines = text.split("\n")
    if len(lines) != 3 or lines[0] != origin or not re.fullmatch("0|[1-9][0-9]*", lines[1]):
        raise ValueError("not a checkpoint of this origin")
    signatures = signatures.split("\n")
    if signatures.pop() != "" or not signatures or exactly_one and len(signatures) != 1:
        raise ValueError("signature lines")
    signed = False
    for line in signatures:
        dash, name, encoded = line.split(" ")
        raw = strict_base64(encoded)
        if dash != "\u2014":
            raise ValueError("not a signature line")
        for spki in keys:
            public = public_key(spki, "checkpoint")
            raw_key = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
            if name == origin and raw[:4] == sha256(origin.encode(), b"\n\x01", raw_key)[:4]:
                try:
                    public.verify(raw[4:], (text + "\n").encode())
                except InvalidSignature:
                    raise ValueError("the checkpoint's signature doesn't hold") from None
                signed = True
    if not signed:
        raise ValueError("no known key signed the checkpoint")
    root = strict_base64(lines[2])
    if len(root) != 32 or int(lines[1]) >= 1 << 62:
        raise ValueError("size or root out of range")
    return int(lines[1]), root


# Events.

MENTIONS = {  # type: (field, class) of each blob reference
    "PreflightObserved": ((5, "detail"),),
    "WorkspaceMutated": ((5, "changes"), (6, "changes"), (8, "detail")),
    "PolicyChecked": ((3, "changes"),),
    "SourceMaterialized": ((4, "source"), (6, "source")),
    "SourceRefused": ((2, "detail"),),
    "RuntimeObserved": ((7, "detail"),),
    "CreateRuledOut": ((4, "detail"),),
    "ContainerCreated": ((4, "detail"),),
    "IsolationObserved": ((4, "controls"), (6, "detail")),
    "KernelObserved": ((3, "controls"),),
    "RuntimeProbed": ((4, "controls"),),
    "CanaryObserved": ((10, "detail"),),
    "StartFailed": ((3, "detail"),),
    "ContainerExited": ((13, "detail"),),
    "CleanupUnconfirmed": ((4, "detail"),),
    "SnapshotLeft": ((2, "detail"),),
    "PathsChecked": ((4, "source"),),
    "AttemptFenced": ((3, "detail"),),
}
def text(x):
    return type(x) is str


def maybe(x):
    return x is True


def listed(rule):
    return lambda x: type(x) is list and all(rule(y) for y in x)


def mapped(required, optional=()):
    def rule(x):
        shape(x, required, optional)
        return True

    return rule


def integer(x):
    return type(x) is int and -(1 << 63) <= x < 1 << 64


nonce = size(16)
ref = mapped({1: digest, 2: digest})
basis = mapped({1: text, 2: uint, 3: digest})
binding = mapped({1: nonce, 2: text, 3: uint, 4: digest})
daemon = mapped({1: text, 3: nonce, 4: uint, 5: uint, 6: uint}, {2: digest, 7: mapped({1: uint, 2: uint, 3: uint})})
build = mapped({1: text, 2: text, 3: text, 4: text, 5: text, 6: text, 7: text, 8: digest})
control = mapped({1: uint, 2: text, 3: lambda x: type(x) is bool, 4: digest}, {5: text})
stream = mapped({1: uint, 2: uint, 3: ref, 4: digest}, {5: maybe, 6: maybe, 7: maybe})
some = lambda rule: lambda x: rule(x) and bool(x)  # written only if it holds something
corpus = mapped({1: lambda x: x == 1, 2: listed(mapped({1: text, 2: text}, {3: maybe})), 3: digest})
context = mapped(
    {1: lambda x: x == 1, 2: text, 3: listed(text), 4: listed(mapped({1: text, 2: digest})), 6: digest, 7: text,
     8: uint, 9: listed(text)},
    {5: digest, 10: maybe, 11: some(listed(text)), 12: corpus})
registered = {1: text, 3: mapped({1: text}, {2: some(text)}), 4: text, 5: digest, 6: digest, 8: digest}
key_change = ({1: text, 2: bytes, 3: digest, 4: bytes},)
coded = ({1: text}, {2: ref})
handle_only = ({1: nonce},)
relied = listed(mapped({1: text, 2: digest}))
grounds = mapped({1: uint, 2: listed(mapped({1: text}, {2: uint, 3: text}))})

SHAPES = {  # schemas/events.cddl: required fields, optional fields
    "LedgerOpened": ({1: nonce, 2: text, 3: bytes, 4: bytes},),
    "KeyAdded": key_change,
    "KeyRetired": key_change,
    "EpochAdvanced": ({1: uint},),
    "StreamSealed": ({},),
    "RuntimeProbed": ({1: text, 2: digest, 3: listed(control), 4: ref},),
    "CanaryObserved": ({1: text, 2: text, 3: digest, 4: digest, 5: digest, 6: digest, 7: digest, 8: text, 10: ref}, {9: some(text)}),
    "ChangeOpened": ({1: text, 2: nonce},),
    "VersionAdded": ({1: uint, 2: text},),
    "ContextSet": ({1: uint, 2: context},),
    "AttemptOpened": ({1: text, 2: bytes},),
    "PathsChecked": ({2: text, 3: listed(text), 4: ref, 5: uint}, {1: some(text), 6: some(uint)}),
    "ContextApproved": ({1: uint, 2: digest, 3: relied, 4: listed(basis), 5: grounds},),
    "ChangeIntegrated": ({1: uint, 2: digest, 3: text, 4: basis, 5: relied, 6: listed(basis), 7: grounds},),
    "AttemptRegistered": (registered, {2: binding, 7: digest, 9: digest, 10: ref}),
    "AttemptClaimed": ({1: uint, 2: listed(basis), 3: mapped({2: nonce, 3: nonce, 4: uint}, {1: digest}), 4: uint, 5: listed(text)},),
    "ClaimVoided": ({1: basis},),
    "PreflightObserved": ({1: text, 2: listed(text), 3: listed(mapped({1: text, 2: text}, {3: text}))},
                          {4: mapped({1: daemon, 2: build}), 5: ref}),
    "WorkspaceMutated": ({1: uint, 2: uint, 3: uint, 4: uint}, {5: ref, 6: ref, 7: text, 8: ref}),
    "PolicyChecked": ({1: digest, 2: listed(mapped({1: text, 2: lambda x: type(x) is bool}))}, {3: ref}),
    "SourceMaterialized": ({1: digest, 2: uint, 3: uint, 4: ref}, {5: some(uint), 6: ref}),
    "SourceRefused": coded,
    "RuntimeObserved": ({1: text, 3: listed(text)},
                        {2: mapped({1: daemon, 2: build}), 4: text, 5: basis, 6: some(listed(text)), 7: ref}),
    "CustodyTaken": ({1: nonce, 2: text, 3: text, 4: digest, 5: daemon},),
    "CreateRuledOut": ({1: nonce, 2: text}, {3: some(uint), 4: ref, 5: daemon}),
    "ContainerCreated": ({1: nonce, 2: digest}, {3: some(uint), 4: ref, 5: maybe}),
    "IsolationObserved": ({1: nonce, 2: listed(control), 4: ref}, {3: some(uint), 5: some(listed(text)), 6: ref}),
    "StartOrdered": handle_only,
    "ContainerStarted": handle_only,
    "StartFailed": ({1: nonce, 2: text}, {3: ref}),
    "KernelObserved": ({1: nonce, 2: listed(control), 3: ref},),
    "StopOrdered": ({2: text, 3: uint}, {1: nonce}),
    "ContainerExited": ({1: nonce, 2: text, 3: integer, 5: text, 12: uint},
                        {4: maybe, 6: some(uint), 7: some(listed(text)), 8: some(text), 9: some(listed(text)),
                         10: some(integer), 11: some(integer), 13: ref}),
    "OutputCaptured": ({1: nonce, 2: stream, 3: stream}, {4: maybe, 5: some(text)}),
    "RemovalOrdered": ({1: nonce, 2: digest},),
    "RemovalObserved": ({1: nonce, 2: text},),
    "CleanupUnconfirmed": ({1: nonce, 2: text, 3: text}, {4: ref}),
    "SnapshotRemoved": ({},),
    "SnapshotLeft": coded,
    "AttemptFenced": ({1: uint, 2: text}, {3: ref}),
    "CustodyAbandoned": handle_only,
    "AttemptFinished": ({1: digest},),
}


class Event:
    def __init__(self, held):
        self.index, self.raw, self.proof = held[1], held[2], held[3]
        leaf = decode(self.raw)
        if not isinstance(leaf, list) or len(leaf) != 9 or leaf[0] != 1:
            raise ValueError("not a leaf")
        _, self.stream, self.version, self.type, self.time, self.prev, self.media, self.meta, self.body = leaf
        ok = (
            isinstance(self.stream, str) and re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,127}", self.stream)
            and uint(self.version) and self.version < 1 << 63
            and isinstance(self.type, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]{0,63}", self.type)
            and type(self.time) is int and -(1 << 63) <= self.time < 1 << 63
            and type(self.prev) is bytes and len(self.prev) == (32 if self.version else 0)
            and isinstance(self.media, str) and re.fullmatch(r"[\x20-\x7e]{1,128}", self.media)
            and type(self.meta) is bytes and len(self.meta) <= 4096
            and type(self.body) is bytes and len(self.body) <= 1 << 20
        )
        if not ok:
            raise ValueError("a leaf's item is out of range")
        self.hash = sha256(b"\x00", self.raw)
        self.data = None

    def open(self):
        """Reads meta and data."""
        if self.media != "application/cbor":
            raise ValueError("another media type")
        meta = decode(self.meta, simple=True)
        shape(meta, {1: uint, 2: str, 4: size(16)}, {3: bytes})
        if self.type not in SHAPES or meta[1] != 1:
            raise NotChecked("event type %s of schema %d is newer than this verifier" % (self.type, meta[1]))
        self.data = decode(self.body, simple=True)
        shape(self.data, *SHAPES[self.type])
        return self

    def mentions(self):
        """Yields (class, plain digest, None) or (class, salted digest, descriptor digest)."""
        d = self.data
        if self.type == "AttemptRegistered":
            for field, kind in ((5, "profile"), (6, "recipe"), (8, "env")):
                yield kind, d[field], None
            if 9 in d:
                yield "profile", d[9], None
            if 10 in d:
                yield "salts", d[10][1], d[10][2]
        elif self.type == "OutputCaptured":
            for field in (2, 3):
                yield "output", d[field][3][1], d[field][3][2]
        else:
            for field, kind in MENTIONS.get(self.type, ()):
                if field in d:
                    yield kind, d[field][1], d[field][2]


# The bundle.


class Bundle:
    def __init__(self, file, identity, trusted_key, kept=None):
        self.file, self.identity, self.trusted, self.kept_note = file, identity, trusted_key, kept
        self.done, self.undone = [], []

    def verify(self):
        for step in (self.envelope, self.early_signature, self.payload, self.ledger, self.late_signature,
                     self.checkpoint, self.kept, self.inclusion, self.streams, self.events, self.scope,
                     self.claims, self.blobs, self.requests, self.recipes, self.contents):
            name = step.__name__.split("_")[-1]
            try:
                step()
            except (Invalid, NotChecked):
                raise
            except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError, cbor2.CBORDecodeError) as e:
                raise Invalid(name, "%s: %s" % (type(e).__name__, e)) from e
            if name not in self.done and name not in self.undone:
                self.done.append(name)

    def envelope(self):
        f = self.file
        if len(f) > MAX_BUNDLE or f[:1] != b"\xd2":
            raise ValueError("no tagged COSE_Sign1")
        parts = decode(f[1:])
        if not isinstance(parts, list) or len(parts) != 4 or parts[1] != {}:
            raise ValueError("not four parts, or a parameter that isn't protected")
        self.protected, _, self.signed, self.sig = parts
        if not all(type(b) is bytes for b in (self.protected, self.signed, self.sig)) or len(self.protected) > MAX_PROTECTED:
            raise ValueError("header, payload and signature are byte strings")
        header = decode(self.protected)
        shape(header, {1: int, 3: lambda x: x == CONTENT_TYPE, 4: digest, 15: dict})
        shape(header[15], {1: is_origin, 2: str})
        self.alg, self.kid, self.issuer, self.subject = header[1], header[4], header[15][1], header[15][2]
        if len(self.sig) != 64 or int.from_bytes(self.sig[32:], "big") > ORDER // 2:
            raise ValueError("the signature is not r and the smaller s")

    def check_signature(self, spki):
        if self.alg != -7:
            raise Invalid("signature", "algorithm %d is not ES256" % self.alg)
        r, s = (int.from_bytes(self.sig[i : i + 32], "big") for i in (0, 32))
        message = encode(["Signature1", self.protected, b"", self.signed])
        try:
            public_key(spki, "bundle").verify(utils.encode_dss_signature(r, s), message, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            raise Invalid("signature", "it doesn't hold") from None

    def early_signature(self):
        self.early = sha256(self.trusted) == self.kid
        if self.early:
            self.check_signature(self.trusted)
        elif self.identity is None:
            raise Invalid("signature", "another key than the trusted one signed")

    def payload(self):
        p = decode(self.signed)
        shape(p, {1: lambda x: x == 1, 2: dict, 3: index, 4: bytes, 5: LIST, 6: LIST, 7: LIST, 8: LIST}, {9: dict})
        shape(p[2], {1: size(16), 2: is_origin, 3: bytes, 4: bytes})
        self.p, self.at, self.tree = p, p[3], p[3] + 1
        if not 1 <= len(p[4]) <= 65536 or not 1 <= len(p[5]) <= MAX_STREAMS or len(p[8]) > MAX_SCHEMAS:
            raise ValueError("limits")
        names, count = [], 0
        for s in p[5]:
            shape(s, {1: str, 2: lambda r: r in ("judged", "basis", "cited", "counted"), 3: LIST})
            names.append(s[1])
            count += len(s[3])
            last = -1
            for e in s[3]:
                shape(e, {1: index, 2: bytes, 3: lambda l: type(l) is list and len(l) <= MAX_PROOF and all(map(digest, l))})
                if not last < e[1] <= self.at:
                    raise ValueError("indexes out of order")
                last = e[1]
            if not s[3]:
                raise ValueError("a stream without events")
        judged = [s[1] for s in p[5] if s[2] == "judged"]
        if names != sorted(set(names)) or count > MAX_EVENTS or not 1 <= len(judged) <= MAX_JUDGED:
            raise ValueError("streams")
        for b in p[6]:
            shape(b, {1: digest, 2: bytes})
        for m in p[7]:
            shape(m, {1: digest, 2: lambda c: c in CLASSES, 3: lambda w: w in ("withheld", "absent")})
        for s in p[8]:
            shape(s, {1: lambda n: type(n) is str and 1 <= len(n.encode()) <= MAX_NAME, 2: digest})
        for key in (6, 7, 8):
            order = [x[1] for x in p[key]]
            if order != sorted(set(order)):
                raise ValueError("a list is out of order")
        if {b[1] for b in p[6]} & {m[1] for m in p[7]}:
            raise ValueError("a blob is held and missing")
        if 9 in p:
            shape(p[9], {1: index, 2: digest, 3: lambda l: type(l) is list and len(l) <= MAX_PROOF + 1 and all(map(digest, l))})
            if p[9][1] in (0, self.tree):
                raise ValueError("kept relates no other tree")
        if self.issuer != p[2][2] or self.subject != ",".join(judged):
            raise ValueError("the header speaks of something else")

    def ledger(self):
        self.opened = {s[1]: [Event(e) for e in s[3]] for s in self.p[5]}
        events = self.opened.get("ledger")
        if not events:
            raise ValueError("no stream ledger")
        self.chain("ledger", events)
        self.keys = Keyring()
        for e in events:
            e.open()
            self.keys.apply(e.type, e.data)
        genesis = {k: self.keys.opened[k] for k in (1, 2, 3, 4)}
        if events[0].index != 0 or genesis != self.p[2] or self.identity is not None and genesis != self.identity:
            raise ValueError("another ledger than the one it names, or than the trusted one")
        if self.keys.find("bundle", self.kid) is None:
            raise ValueError("the signing key is not live")

    def late_signature(self):
        if not self.early:
            self.check_signature(self.keys.find("bundle", self.kid))

    def checkpoint(self):
        size_, self.root = open_note(self.p[4], self.p[2][2], self.keys.live["checkpoint"], exactly_one=True)
        if size_ != self.tree:
            raise ValueError("the checkpoint is of another size")

    def kept(self):
        held = self.p.get(9)
        if held:
            trees = sorted(((held[1], held[2]), (self.tree, self.root)))
            consistent(*trees[0], *trees[1], held[3])
        if self.kept_note is None:
            if not held:
                self.undone.append("kept")
            return
        claimed = int(self.kept_note.split(b"\n")[1])
        keys = Keyring()
        for e in self.opened["ledger"]:
            if e.index < claimed:
                keys.apply(e.type, e.data)
        size_, root = open_note(self.kept_note, self.p[2][2], keys.live["checkpoint"], exactly_one=False)
        if size_ == self.tree:
            known = self.root
        elif held and held[1] == size_:
            known = held[2]
        else:
            raise NotChecked("the bundle holds no proof from the kept checkpoint of size %d" % size_)
        if root != known:
            raise ValueError("the kept checkpoint is of another history")

    def inclusion(self):
        for events in self.opened.values():
            for e in events:
                if root_from_inclusion(e.hash, e.index, self.tree, e.proof) != self.root:
                    raise ValueError("the event at index %d is not in the tree" % e.index)

    @staticmethod
    def chain(name, events):
        prev = b""
        for version, e in enumerate(events):
            if e.stream != name or e.version != version or e.prev != prev:
                raise ValueError("stream %s breaks at version %d" % (name, version))
            prev = e.hash

    def streams(self):
        for name, events in self.opened.items():
            self.chain(name, events)

    def events(self):
        for events in self.opened.values():
            for e in events:
                e.open()

    def scope(self):
        """Exactly the streams that what is judged needs, each as far as needed."""
        roles = {s[1]: s[2] for s in self.p[5]}
        need, bindings = {}, []  # stream: its last judgement or None, the last version cited, whether it is counted

        def rests(name, judgement=None, version=-1, counted=False):
            n = need.setdefault(name, [None, -1, False])
            if judgement is not None:
                n[0] = judgement if n[0] is None else max(n[0], judgement)
            n[1], n[2] = max(n[1], version), n[2] or counted

        for name, role in roles.items():
            if role != "judged":
                continue
            events = self.opened[name]
            first = events[0]
            if name.startswith("change-"):
                if first.type != "ChangeOpened" or first.data[1] != name[7:]:
                    raise ValueError("stream %s is no change's" % name)
                rests("ledger", first.index)
                for a in events:
                    if a.type in ("ContextApproved", "ChangeIntegrated"):
                        b = {1: first.data[2], 2: first.data[1], 3: a.data[1], 4: a.data[2]}
                        if b not in bindings:
                            bindings.append(b)
                continue
            if not name.startswith("attempt-") or first.type != "AttemptRegistered" or first.data[1] != name[8:]:
                raise ValueError("stream %s is no attempt's" % name)
            if not any(e.type == "AttemptFinished" for e in events):
                raise ValueError("attempt %s is not finished" % name)
            claim = next((e for e in events if e.type == "AttemptClaimed"), None)
            at = (claim or first).index
            rests("ledger", at)
            for b in claim.data[2] if claim else ():
                rests(b[1], at)
            if 2 in first.data:
                rests("change-" + first.data[2][2], at)
                if first.data[2] not in bindings:
                    bindings.append(first.data[2])
            self.probes(events, rests)
        for b in bindings:
            self.admissions(self.opened["change-" + b[2]], b, rests)
        want = {k: "counted" if v[2] else "cited" if v[0] is None else "basis" for k, v in need.items() if roles.get(k) != "judged"}
        if want != {k: r for k, r in roles.items() if r != "judged"}:
            raise ValueError("the bundle holds other streams than what it judges needs")
        for name, (judgement, cited, counted) in need.items():
            enough, finished = [], False
            for e in self.opened[name]:
                finished = finished or counted and e.type == "AttemptFinished"
                enough.append((judgement is None or finished or e.index > judgement) and e.version >= cited)
            whole = name == "ledger" or roles[name] == "judged"
            if not enough[-1] or not whole and True in enough[:-1]:
                raise ValueError("stream %s is not held exactly as far as needed" % name)

    def admissions(self, change, binding, rests):
        """What the admissions of a binding's context rest on, which came before them, and the attempts they
        count."""
        for a in change:
            if a.type not in ("ContextApproved", "ChangeIntegrated") or (a.data[1], a.data[2]) != (binding[3], binding[4]):
                continue
            rests("ledger", a.index)
            rests(a.stream, a.index)
            for b in a.data[4 if a.type == "ContextApproved" else 6]:
                counted = b[1].startswith("attempt-")
                named = self.opened[b[1]][b[2]]
                if named.hash != b[3] or named.index >= a.index:
                    raise ValueError("an admission rests on what is not so")
                rests(b[1], a.index, b[2] if counted else -1, counted)
            for r in a.data[3 if a.type == "ContextApproved" else 5]:
                self.probes((e for e in self.opened["attempt-" + r[1]] if e.index < a.index), rests)
            for e in change:
                if e.type == "AttemptOpened" and e.index < a.index:
                    registration = decode(e.data[2], simple=True)
                    listed_for = registration.get(2, {})
                    if (listed_for.get(3), listed_for.get(4)) == (binding[3], binding[4]):
                        rests("attempt-" + e.data[1], a.index, counted=True)
            for attempt in self.canaries(change, a):
                rests("attempt-" + attempt, a.index, counted=True)

    @staticmethod
    def probes(events, rests):
        for e in events:
            if e.type == "RuntimeObserved" and 5 in e.data:
                rests(e.data[5][1], version=e.data[5][2])

    def canaries(self, change, a):
        """The attempts of the canaries that qualify the runtimes an admission rests on: of each canary of the
        context's corpus, the last observation that is of the corpus and of the relied attempt's profile table."""
        named, tables = None, {}
        for e in change:
            if e.index < a.index and e.type == "ContextSet" and sha256(encode(e.data[2])) == a.data[2]:
                named = e.data[2].get(12)
            elif e.index < a.index and e.type == "AttemptOpened":
                tables[e.data[1]] = decode(e.data[2], simple=True)[5]
        if named is None:
            return
        approved = a.type == "ContextApproved"
        for b in a.data[4 if approved else 6]:
            if not b[1].startswith("runtime-"):
                continue
            for r in a.data[3 if approved else 5]:
                last = {}
                for e in self.opened[b[1]][:b[2] + 1]:
                    if e.type == "CanaryObserved" and (e.data[6], e.data[7]) == (tables.get(r[1]), sha256(encode(named))):
                        last[e.data[1]] = e.data[2]
                for c in named[2]:
                    if c[1] in last:
                        yield last[c[1]]

    def claims(self):
        """The first rule of a claim: what it rests on is in the bundle and came before it."""
        for s in self.p[5]:
            for e in self.opened[s[1]]:
                if s[2] == "judged" and e.type == "AttemptClaimed":
                    rests = e.data[2]
                elif s[2] == "judged" and e.type == "RuntimeObserved" and 5 in e.data:
                    rests = [e.data[5]]
                else:
                    continue
                for b in rests:
                    named = self.opened[b[1]][b[2]]
                    if named.hash != b[3] or named.index >= e.index:
                        raise ValueError("index %d rests on what is not so" % e.index)
        self.epochs()
        self.undone += ["history", "record", "void claims", "admission"]

    def epochs(self):
        """No context is of an epoch that its policy hadn't reached where it was set, as far as that is shown."""
        for events in self.opened.values():
            for e in events:
                if e.type != "ContextSet":
                    continue
                policy = self.opened.get("policy-" + e.data[2][7], [])
                before = [p for p in policy if p.index < e.index]
                reached = max([p.data[1] for p in before if p.type == "EpochAdvanced"], default=0)
                if len(before) < len(policy) and e.data[2][8] > reached:
                    raise ValueError("index %d sets a context of an epoch to come" % e.index)

    def blobs(self):
        held = self.held = {b[1]: b[2] for b in self.p[6]}
        missing = {m[1]: m[2] for m in self.p[7]}
        classes = {}
        roles = {s[1]: s[2] for s in self.p[5]}
        for events in self.opened.values():
            for e in events:
                if roles[e.stream] == "counted":
                    continue
                for kind, main, descriptor in e.mentions():
                    for d in (main,) if descriptor is None else (main, descriptor):
                        if not digest(d) or classes.setdefault(d, kind) != kind or d not in held and d not in missing:
                            raise ValueError("a blob is named in two classes, or neither held nor missing")
                    self.blob(held, main, descriptor)
        if set(held) - set(classes) or any(classes.get(d) != c for d, c in missing.items()):
            raise ValueError("a blob is there that no event names")
        if "profile" in missing.values():
            raise ValueError("the profile table is missing")
        if missing:
            self.undone.append("missing: " + ", ".join(sorted(set(missing.values()))))

    @staticmethod
    def blob(held, main, descriptor):
        if descriptor is None:
            if main in held and sha256(held[main]) != main:
                raise ValueError("a blob has another digest")
            return
        if descriptor not in held:
            if main in held:
                raise ValueError("bytes without their descriptor")
            return
        if sha256(held[descriptor]) != descriptor:
            raise ValueError("a descriptor has another digest")
        d = decode(held[descriptor], simple=True)
        shape(d, {1: digest, 2: uint, 3: digest, 4: digest}, {5: lambda x: x is True, 6: lambda x: x is True})
        if main not in held:
            return
        b = held[main]
        if sha256(d[1], b) != main or len(b) != d[2] or sha256(b) != d[3] or 5 not in d and d[3] != d[4]:
            raise ValueError("a blob is not what its descriptor says")


    def judged(self):
        """The judged attempts."""
        return [self.opened[s[1]] for s in self.p[5] if s[2] == "judged" and s[1].startswith("attempt-")]

    def requests(self):
        """Every daemon object carries the digest of the request; recomputed from what is bound."""
        for events in self.judged():
            reg = events[0].data
            claim = next((e.data for e in events if e.type == "AttemptClaimed"), None)
            source = next((e.data for e in events if e.type == "SourceMaterialized"), None)
            for e in events:
                if e.type != "CustodyTaken":
                    continue
                b = reg.get(2, {})
                revision = source[1] if reg[3][1] == "directory" else reg[3][2]
                request = ["baildock.execution-request.v1", reg[1], claim[1], b.get(1), b.get(2), b.get(3), b.get(4),
                           revision, reg[6], reg.get(7), reg[8], reg[5]]
                if sha256(encode(request)) != e.data[4]:
                    raise ValueError("custody carries another request")

    def recipes(self):
        limits = mapped({k: uint for k in range(1, 7)})
        terms = mapped({1: uint, 2: uint, 3: text, 4: text, 5: listed(text)}, {6: digest, 7: text})
        for events in self.judged():
            reg, recipe = events[0].data, None
            if reg[6] in self.held:
                recipe = decode(self.held[reg[6]])
                shape(recipe, {1: lambda x: x == 1, 2: text, 3: digest, 4: text, 5: listed(text), 6: digest, 8: limits},
                      {7: digest, 9: nonce, 10: terms})
                if (10 in recipe) != (reg[4] == "contained/v1") or recipe.get(10, {}).get(6) != reg.get(9):
                    raise ValueError("the recipe's terms are not of its profile, or name another workspace policy")
                if (recipe[2], recipe[6], recipe.get(7)) != (reg[4], reg[8], reg.get(7)):
                    raise ValueError("the recipe is not the one registered")
            if reg[8] in self.held:
                env = decode(self.held[reg[8]])
                shape(env, {1: lambda x: x == 1, 3: listed(mapped({1: text, 2: text}))},
                      {2: nonce, 4: some(listed(mapped({1: text, 2: digest})))})
                if (4 in env) != (10 in reg) or env[3] and 4 in env:
                    raise ValueError("the environment holds values and commitments, or nothing says what opens them")
                names = [v[1] for v in env.get(4, env[3])]
                salts = self.opens(reg[10])[0] if 10 in reg else None
                if salts is not None and [v[1] for v in decode(salts)] != names:
                    raise ValueError("the salts are not of the environment's entries")
                if names != sorted(set(names)) or recipe is not None and recipe.get(9) != env.get(2):
                    raise ValueError("the environment is not the recipe's")

    def opens(self, r):
        """The bytes of a reference and their descriptor, if both are held."""
        if r[1] in self.held and r[2] in self.held:
            return self.held[r[1]], decode(self.held[r[2]], simple=True)
        return None, None

    def contents(self):
        """Control values, manifests and outputs agree with their events."""
        for events in self.opened.values():
            for e in events:
                field = {"IsolationObserved": 4, "KernelObserved": 3, "RuntimeProbed": 4}.get(e.type)
                if field:
                    controls = e.data[3 if e.type == "RuntimeProbed" else 2]
                    b, _ = self.opens(e.data[field])
                    if b is None:
                        continue
                    values = decode(b)
                    if not listed(mapped({1: uint, 2: digest, 3: text, 4: text}))(values) or len(values) != len(controls):
                        raise ValueError("control values")
                    for c, v in zip(controls, values):
                        if c[1] != v[1] or sha256(v[2], v[4].encode()) != c[4]:
                            raise ValueError("a value doesn't open its control")
                elif e.type == "SourceMaterialized":
                    b, _ = self.opens(e.data[4])
                    if b is None:
                        continue
                    manifest = decode(b)
                    # Of a workspace's entries [path, type, mode, size, content] files alone have a size.
                    total = lambda m: sum(f[3] if f[1] == 1 else 0 for f in m[1]) if m[0] == "baildock.workspace.v1" else sum(f[2] for f in m[1])
                    if sha256(b) != e.data[1] or len(manifest[1]) != e.data[2] or total(manifest) != e.data[3]:
                        raise ValueError("the manifest is not the one bound")
                elif e.type == "OutputCaptured":
                    for s in (e.data[2], e.data[3]):
                        b, d = self.opens(s[3])
                        if b is None:
                            continue
                        cut = 6 in s
                        ok = s[1] == d[2] and cut == (5 in d) and (7 in s) == (6 in d) and s[2] >= s[1]
                        if not ok or not cut and (s[1] != s[2] or s[4] != s[3][1]):
                            raise ValueError("an output is not what its event says")


def verdict(file, trust, kept=None):
    """Returns (verdict, check, why)."""
    identity, key = parse_trust(trust)
    b = Bundle(file, identity, key, kept)
    try:
        b.verify()
    except Invalid as e:
        return "invalid", e.check, str(e)
    except NotChecked as e:
        return "not_checked", "", str(e)
    return "valid", ", ".join(b.done), "not checked here: " + "; ".join(b.undone)


def main():
    args = argparse.ArgumentParser(description="verify a bundle without Baildock")
    args.add_argument("bundle")
    args.add_argument("--key", required=True, help="ledger.pub, or the PEM of a bundle key")
    args.add_argument("--checkpoint", help="a checkpoint of the ledger that you kept")
    o = args.parse_args()
    with open(o.bundle, "rb") as f:
        file = f.read(MAX_BUNDLE + 1)
    with open(o.key, encoding="utf-8", newline="") as f:
        trust = f.read()
    kept = None
    if o.checkpoint:
        with open(o.checkpoint, "rb") as f:
            kept = f.read(65537)
    result, check, why = verdict(file, trust, kept)
    print("%s: %s\n%s" % (result, check, why))
    sys.exit({"valid": 0, "invalid": 7, "not_checked": 8}[result])


if __name__ == "__main__":
    main()
