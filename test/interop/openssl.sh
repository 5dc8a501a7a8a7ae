#!/usr/bin/env bash
# Checks a bundle's signature with openssl: openssl.sh BUNDLE KEY
# KEY is a ledger.pub or a bundle key's PEM. Exit 0 only if openssl says that the signature holds. This shows
# who signed these bytes and nothing of what they say: a verifier does that.
set -euo pipefail
bundle=$1 key=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bytes() { tail -c +"$(($1 + 1))" "$bundle" | head -c "$2" || true; } # FROM COUNT
hex() { bytes "$@" | xxd -p | tr -d '\n'; }
refuse() { echo "refused: $1" >&2; exit 1; }

size=$(stat -c %s "$bundle")
[ "$size" -gt 70 ] || refuse "too short"
# 18([protected, {}, payload, signature]): d2 84, then the protected header as a byte string.
[ "$(hex 0 2)" = d284 ] || refuse "not a tagged COSE_Sign1 of four parts"
case $(hex 2 1) in
58) head=2 length=$((16#$(hex 3 1))) ;;
59) head=3 length=$((16#$(hex 3 2))) ;;
*) refuse "no protected header" ;;
esac
payload=$((2 + head + length + 1))
[ "$(hex $((payload - 1)) 1)" = a0 ] || refuse "the unprotected header is not empty"
[ "$(hex $((size - 66)) 2)" = 5840 ] || refuse "the signature is not 64 bytes"

# The first key of a ledger.pub; its SHA-256 is the key ID in the protected header.
sed -n '/BEGIN PUBLIC KEY/,/END PUBLIC KEY/p;/END PUBLIC KEY/q' "$key" >"$dir/key.pem"
kid=$(openssl pkey -pubin -in "$dir/key.pem" -outform DER | sha256sum | cut -d' ' -f1)
header=$(hex $((2 + head)) "$length")
[[ $header == *"045820$kid"* ]] || refuse "another key signed it"
[[ $header == a40126* ]] || refuse "the algorithm is not ES256"

# Sig_structure (RFC 9052 section 4.4): header and payload stand in it as they stand in the file.
{
	printf '\x84\x6aSignature1'
	bytes 2 $((head + length))
	printf '\x40'
	bytes "$payload" $((size - 66 - payload))
} >"$dir/message"
r=$(hex $((size - 64)) 32) s=$(hex $((size - 32)) 32)
printf 'asn1=SEQUENCE:pair\n[pair]\nr=INTEGER:0x%s\ns=INTEGER:0x%s\n' "$r" "$s" >"$dir/pair"
openssl asn1parse -genconf "$dir/pair" -noout -out "$dir/signature.der"
openssl dgst -sha256 -verify "$dir/key.pem" -signature "$dir/signature.der" "$dir/message"
