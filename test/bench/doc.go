// Package bench measures the whole program against what people would run instead. Each figure is
// a ratio to a baseline of the same run, taken in pairs that alternate in order, so that a noisy
// machine is noisy for both.
//
//	make bench
package bench
