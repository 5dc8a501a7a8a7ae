package conformance

import (
	"bytes"
	"encoding/hex"
	"fmt"
)

// A spoilt bundle is written as what it keeps of a good one: a list of parts, each either [offset, length] in
// the base or hex of its own. Concatenated they are the file.

const grain = 24 // bytes that must agree before a part is worth naming

// partsOf is the parts that make target from base.
func partsOf(base, target []byte) []any {
	at := map[string][]int{}
	for i := 0; i+grain <= len(base); i++ {
		k := string(base[i : i+grain])
		at[k] = append(at[k], i)
	}
	parts := []any{}
	var own []byte
	flush := func() {
		if len(own) > 0 {
			parts = append(parts, hex.EncodeToString(own))
			own = nil
		}
	}
	for i := 0; i < len(target); {
		from, n := 0, 0
		if i+grain <= len(target) {
			for _, f := range at[string(target[i:i+grain])] {
				if m := agree(base[f:], target[i:]); m > n {
					from, n = f, m
				}
			}
		}
		if n < grain {
			own = append(own, target[i])
			i++
			continue
		}
		flush()
		parts = append(parts, []int{from, n})
		i += n
	}
	flush()
	return parts
}

func agree(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// joined is the file that parts make.
func joined(base []byte, parts []any) ([]byte, error) {
	var out bytes.Buffer
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b, err := hex.DecodeString(p)
			if err != nil {
				return nil, err
			}
			out.Write(b)
		case []any:
			var from, n int
			if _, err := fmt.Sscan(fmt.Sprint(p...), &from, &n); err != nil || from < 0 || n < 0 || from+n > len(base) {
				return nil, fmt.Errorf("part %v is not in the base", p)
			}
			out.Write(base[from : from+n])
		default:
			return nil, fmt.Errorf("part %v", p)
		}
	}
	return out.Bytes(), nil
}
