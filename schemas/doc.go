// Package schemas holds the schemas of everything Baildock writes: CDDL (RFC 8610) for CBOR.
//
// A bundle names the texts it was written under by their SHA-256. Tests hold real output to them.
package schemas
