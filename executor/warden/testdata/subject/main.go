// Command subject is what the warden's live tests run inside a container.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
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
	case "speak": // so many bytes of every value to each stream, by turns, in pieces that grow
		var left, said [2]int
		for i := range left {
			n, err := strconv.Atoi(args[i])
			if err != nil {
				return err
			}
			left[i] = n
		}
		for turn := 0; left[0]+left[1] > 0; turn++ {
			i := turn % 2
			piece := make([]byte, min(1+turn*turn, left[i]))
			for k := range piece {
				at := said[i] + k
				piece[k] = byte(at*7) ^ byte(at>>8) ^ byte(i)
			}
			if _, err := []*os.File{os.Stdout, os.Stderr}[i].Write(piece); err != nil {
				return err
			}
			left[i], said[i] = left[i]-len(piece), said[i]+len(piece)
		}
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
	case "signal": // sends itself a signal, and goes on if it can
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		if err := syscall.Kill(os.Getpid(), syscall.Signal(n)); err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	case "murder": // kills a child, and passes its status on as a shell does if asked to
		child := exec.Command("/subject", "sleep", "1h")
		if err := child.Start(); err != nil {
			return err
		}
		if err := child.Process.Kill(); err != nil {
			return err
		}
		fmt.Println("the child ended:", child.Wait())
		if len(args) > 0 {
			os.Exit(128 + 9)
		}
	case "hold": // some memory, all of it used
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		b := make([]byte, n<<20)
		for i := range b {
			b[i] = byte(i)
		}
		fmt.Println("held", len(b), b[len(b)-1])
	case "bomb": // processes until there can be no more
		n := 0
		for ; n < 1000; n++ {
			if err := exec.Command("/subject", "sleep", "1h").Start(); err != nil {
				break
			}
		}
		if n == 1000 {
			return fmt.Errorf("processes have no bound")
		}
		fmt.Println("bounded")
	case "orphan": // leaves a child behind that writes later
		child := exec.Command("/subject", "late")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			return err
		}
		fmt.Println("gone")
	case "late":
		time.Sleep(time.Second)
		fmt.Println("late")
	case "agent":
		return agent(args)
	case "report":
		return warden.ProbeSelf(os.Stdout)
	default:
		return fmt.Errorf("unknown verb %q", verb)
	}
	return nil
}
