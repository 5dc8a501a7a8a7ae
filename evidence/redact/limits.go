package redact

const (
	// MinSecret is the shortest secret: anything shorter would be found by chance.
	MinSecret = 8
	// MaxSecrets is more than the variables of one run.
	MaxSecrets = 256
	// MaxBytes bounds all secrets together, and with them the automata (some 20 MiB at the most).
	MaxBytes = 64 << 10

	// maxChains is how many alignments of one form are followed at once. More have matched something
	// only where a secret repeats what an encoder makes of it.
	maxChains = 8

	// block is how much of a long chunk is worked on at once: it bounds what a stream buffers.
	block = 32 << 10
)
