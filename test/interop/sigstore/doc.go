// Package sigstore asks sigstore-go, which we did not write, whether the Sigstore bundles that
// `baildock export --sigstore` writes are good, and that it refuses every change to them.
//
// It is a module of its own. It runs the built program, which the variable BAILDOCK names.
package sigstore
