// Package canary holds the corpus of canaries of `command/v1`: what each tries at a container's boundary, what
// must come of it, the program that tries it inside, and the judgement of what it reports.
//
// A canary is a list of steps, each one action on one thing. The program runs them all and writes one
// report, canonical CBOR, with the error or the value that each step got. It decides nothing: Judge compares the
// report with the table, outside, and the attempt's own record says how the canary ended. Where a step can come
// out right for more than one reason, its row says so.
//
//	c, ok := canary.Find("filesystem.root")
//	canary.Run(c, os.Stdout)                     // inside
//	verdict, code := canary.Judge(c, stdout)     // outside
//
// A memory bound, an output bound and a timeout show in the outcome alone: such a canary has steps that never
// come to an end, and no report.
package canary
