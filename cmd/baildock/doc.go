// Command baildock runs commands nobody trusts yet in contained Docker containers, records every
// step in a tamper-evident ledger and exports signed bundles that anybody checks offline.
//
// Each verb has one file that wires packages together; what a verb decides is decided in them.
// Four files hold what all verbs share, and nothing else does it:
//
//	exit.go   what an error means to a script: exit code, stable code, hint
//	ui.go     what a person sees: terminal, progress, colours, hostile bytes made harmless
//	flags.go  where flags may stand, and how sizes and numbers are written
//	home.go   where the ledger, the keys and the execution directories lie
//
// kept.go compares a home with the last checkpoint kept outside of it, before anything is written.
//
// Flags are accepted before and after arguments, up to `--`; every token after `--` is the
// contained command's, untouched. Data goes to stdout, progress and errors to stderr. With
// --json, stdout is one JSON document and an error is one JSON object on stderr.
//
//	baildock init
//	baildock run --image gofmt --source .@HEAD -- /bin/gofmt -l /source
//	baildock export @last -o run.cbor
//	baildock verify run.cbor --key .baildock/ledger.pub
package main
