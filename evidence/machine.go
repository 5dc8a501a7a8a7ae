package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// machineDomain separates our machine IDs from every other hash of the same file, as
// machine-id(5) asks of applications.
const machineDomain = "baildock.machine-id.v1\x00"

// ParseMachineID turns the content of /etc/machine-id, 32 lower-case hex digits, into an ID that
// can't be linked to the file.
func ParseMachineID(text []byte) (MachineID, error) {
	var raw [16]byte
	t := bytes.TrimSpace(text)
	if n, err := hex.Decode(raw[:], bytes.ToLower(t[:min(len(t), 2*len(raw))])); err != nil || n != len(raw) || len(t) != 2*len(raw) {
		return MachineID{}, fmt.Errorf("machine ID %q is not 32 hex digits", t)
	}
	if raw == [16]byte{} {
		return MachineID{}, fmt.Errorf("machine ID is all zero")
	}
	return sha256.Sum256(append([]byte(machineDomain), raw[:]...)), nil
}

// ParseBootID turns the content of /proc/sys/kernel/random/boot_id, a UUID, into 16 bytes.
func ParseBootID(text []byte) (Nonce, error) {
	var n Nonce
	t := strings.TrimSpace(string(text))
	if err := n.UnmarshalText([]byte(strings.ReplaceAll(t, "-", ""))); err != nil || n == (Nonce{}) {
		return Nonce{}, fmt.Errorf("boot ID %q is not a UUID", t)
	}
	return n, nil
}
