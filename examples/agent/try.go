package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// dialTimeout is long enough for a network that is there.
const dialTimeout = 2 * time.Second

// try does what a contained agent can't do, and says what came of it.
func try(_ *os.Root, w []string, out io.Writer) error {
	var what string
	var err error
	switch {
	case len(w) == 2 && w[0] == "read":
		what = "read " + w[1]
		err = readable(w[1])
	case len(w) == 2 && w[0] == "write":
		what = "write " + w[1]
		err = os.WriteFile(w[1], []byte("was here\n"), 0o600)
	case len(w) == 3 && w[0] == "dial":
		what = "dial " + w[1] + " " + w[2]
		var c net.Conn
		if c, err = net.DialTimeout(w[1], w[2], dialTimeout); err == nil {
			err = c.Close()
		}
	default:
		return fmt.Errorf("no such thing to try: %q", w)
	}
	if err != nil {
		_, err = fmt.Fprintf(out, "%s: refused: %v\n", what, err)
		return err
	}
	_, err = fmt.Fprintf(out, "%s: DONE, which it shouldn't have been\n", what)
	return err
}

// readable opens a file, or lists a directory.
func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // a read-only handle
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		_, err = f.ReadDir(1)
	} else {
		_, err = f.Read(make([]byte, 1))
	}
	return err
}
