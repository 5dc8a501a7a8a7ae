// Package schemas holds the schemas of everything Baildock writes: CDDL (RFC 8610) for CBOR, JSON
// Schema (2020-12) for every JSON document of the command line.
//
//	text, err := schemas.Find("bundle")    // also printed by: baildock schema bundle
//
// A bundle names the CDDL texts it was written under by their SHA-256. Tests hold real output to all
// of them. Members of a JSON document may be added in any version; none changes its meaning.
package schemas
