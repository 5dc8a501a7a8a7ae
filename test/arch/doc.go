// Package arch checks rules that no compiler checks: which package may import which, one package
// comment a package, files of a size that is read in one sitting, no test that hides a missing
// prerequisite, and requirement names that exist.
//
// Each rule is a test; what it protects stands beside it.
package arch
