package export

// MaxKeyFile bounds a private key's file. The largest form, encrypted and armoured, needs under
// 2 KiB.
const MaxKeyFile = 64 << 10
