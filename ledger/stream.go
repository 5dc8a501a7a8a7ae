package ledger

import "fmt"

// StreamID names a stream: 1..MaxStream bytes of [a-z0-9._-], starting with a letter or digit.
type StreamID string

// ParseStreamID checks a stream's name. The ledger gives no meaning to any part of it.
func ParseStreamID(s string) (StreamID, error) {
	if s == "" {
		return "", fmt.Errorf("stream name is empty; use 1 to %d of a-z, 0-9, '.', '_' and '-'", MaxStream)
	}
	if len(s) > MaxStream {
		return "", fmt.Errorf("stream name has %d bytes; at most %d are allowed", len(s), MaxStream)
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isLowerOrDigit(c) && (i == 0 || c != '.' && c != '_' && c != '-') {
			return "", fmt.Errorf("stream name %q has %q at byte %d; use a-z, 0-9, '.', '_' and '-', starting with a letter or digit", s, c, i)
		}
	}
	return StreamID(s), nil
}

func isLowerOrDigit(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
