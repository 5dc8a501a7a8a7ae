package redact

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkStream compares redacting a text with what a program would do that only looks for the
// plain secrets and copies: the ratio says what the other forms cost.
func BenchmarkStream(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 6))
	words := make([]byte, 1<<20)
	for i := range words {
		words[i] = "etaoin shrdlu cmfwyp\n"[rng.IntN(21)]
	}
	random := make([]byte, 1<<20)
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	secrets := []string{"sk_live_4eC39HqLyjWDarjtT1zdp7dc", "hunter2-hunter2", "postgres://user:pa%20ss@db/x"}
	for name, text := range map[string][]byte{"log": words, "random": random} {
		b.Run(name, func(b *testing.B) {
			r := must(b, secrets...)
			b.SetBytes(int64(len(text)))
			var ours, plain time.Duration
			copied := make([]byte, 0, len(text))
			for b.Loop() {
				start := time.Now()
				s := r.Stream()
				for rest := text; len(rest) > 0; rest = rest[32<<10:] {
					s.Push(rest[:32<<10])
				}
				s.Close()
				ours += time.Since(start)
				start = time.Now()
				copied = copied[:0]
				for rest := text; len(rest) > 0; rest = rest[32<<10:] {
					for _, secret := range secrets {
						if bytes.Contains(rest[:32<<10], []byte(secret)) {
							b.Fatal("the text holds a secret")
						}
					}
					copied = append(copied, rest[:32<<10]...)
				}
				plain += time.Since(start)
			}
			b.ReportMetric(float64(ours)/float64(plain), "x-contains+copy")
		})
	}
}
