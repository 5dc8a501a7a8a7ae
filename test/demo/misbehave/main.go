// Command misbehave does what contained commands do wrong, on demand: for the demonstration and
// for live tests. Built without cgo it needs nothing else in its image.
//
//	misbehave exit N       exit with status N after a line on stderr
//	misbehave sleep TIME   sleep
//	misbehave flood        write to stdout without end
//	misbehave write N      write exactly N bytes to stdout
//	misbehave escape       write terminal escapes and bytes that are no text
//	misbehave env          print the environment, a line each
//	misbehave edit FILE    write a line to a file
//	misbehave read FILE    copy a file to stdout
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := misbehave(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "misbehave:", err)
		os.Exit(64)
	}
}

func misbehave(args []string) error {
	what, arg := "", ""
	if len(args) > 0 {
		what = args[0]
	}
	if len(args) > 1 {
		arg = args[1]
	}
	switch what {
	case "exit":
		n, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "going to exit with status %d\n", n)
		os.Exit(n)
	case "sleep":
		d, err := time.ParseDuration(arg)
		if err != nil {
			return err
		}
		fmt.Printf("going to sleep for %v\n", d)
		time.Sleep(d)
	case "flood":
		line := bytes.Repeat([]byte("flood\n"), 1024)
		for {
			if _, err := os.Stdout.Write(line); err != nil {
				return err
			}
		}
	case "write":
		n, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return err
		}
		_, err = io.CopyN(os.Stdout, zeros{}, n)
		return err
	case "escape":
		fmt.Print("\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202ereversed \xff\xfe end\n")
	case "env":
		for _, e := range os.Environ() {
			fmt.Println(e)
		}
	case "edit":
		return os.WriteFile(arg, []byte("edited\n"), 0o644)
	case "read":
		b, err := os.ReadFile(arg)
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(b)
		return err
	default:
		return fmt.Errorf("%q is none of exit, sleep, flood, write, escape, env, edit, read", what)
	}
	return nil
}

// zeros reads as '0' for ever.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}
