// Command subject is what the warden's live tests run inside a container.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/baildock/baildock/executor/warden"
)

func main() {
	if len(os.Args) < 2 {
		os.Exit(70)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(71)
	}
}

func run(verb string, args []string) error {
	switch verb {
	case "cat":
		b, err := os.ReadFile(args[0])
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "read", len(b))
		_, err = os.Stdout.Write(b)
		return err
	case "exit":
		code, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		os.Exit(code)
	case "sleep":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			return err
		}
		fmt.Println("sleeping")
		time.Sleep(d)
	case "tree": // a process tree that ignores its parent's end
		if err := exec.Command("/subject", "sleep", args[0]).Start(); err != nil {
			return err
		}
		return run("sleep", args)
	case "flood":
		line := strings.Repeat("x", 1023) + "\n"
		for {
			if _, err := os.Stdout.WriteString(line); err != nil {
				return err
			}
		}
	case "hog": // all memory there is
		var all [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 1
			}
			all = append(all, b)
			if len(all) > 1<<20 {
				return fmt.Errorf("memory has no bound")
			}
		}
	case "parent": // outlives a child that memory killed, and exits 0
		err := exec.Command("/subject", "hog").Run()
		fmt.Println("the child ended:", err)
	case "report":
		return warden.ProbeSelf(os.Stdout)
	default:
		return fmt.Errorf("unknown verb %q", verb)
	}
	return nil
}
