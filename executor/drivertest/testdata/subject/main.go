// Command subject is what the driver suite runs inside a container.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(70)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("subject needs a verb and its value")
	}
	switch verb, value := args[0], args[1]; verb {
	case "print":
		for i, f := range []*os.File{os.Stdout, os.Stderr} {
			text, err := strconv.Unquote(`"` + args[1+i] + `"`)
			if err != nil {
				return err
			}
			if _, err := f.WriteString(text); err != nil {
				return err
			}
		}
	case "flood":
		n, err := strconv.Atoi(value)
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(make([]byte, n))
		return err
	case "exit":
		code, err := strconv.Atoi(value)
		if err != nil {
			return err
		}
		os.Exit(code)
	case "sleep":
		d, err := time.ParseDuration(value)
		if err != nil {
			return err
		}
		time.Sleep(d)
	default:
		return fmt.Errorf("unknown verb %q", verb)
	}
	return nil
}
