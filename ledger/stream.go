package ledger

// StreamID names a stream: 1..MaxStream bytes of [a-z0-9._-], starting with a letter or digit.
type StreamID string
