package export

const (
	// MaxKeyFile bounds a private key's file. The largest form, encrypted and armoured, needs under
	// 2 KiB.
	MaxKeyFile = 64 << 10

	// maxScheme bounds the scheme of a key reference; the longest in use has 9 bytes.
	maxScheme = 32
)
