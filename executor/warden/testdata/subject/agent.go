package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// agent does what its arguments say, one after the other, in the workspace it stands in.
func agent(args []string) error {
	for _, a := range args {
		what, rest, _ := strings.Cut(a, ":")
		path, text, _ := strings.Cut(rest, ":")
		var err error
		switch what {
		case "write":
			err = os.WriteFile(path, []byte(text), 0o644)
		case "exec":
			err = os.Chmod(path, 0o755)
		case "remove":
			err = os.Remove(path)
		case "rename":
			err = os.Rename(path, text)
		case "mkdir":
			err = os.MkdirAll(path, 0o755)
		case "refused": // a write that must fail
			if err := os.WriteFile(path, nil, 0o644); err == nil {
				return fmt.Errorf("%s could be written", path)
			}
		case "grow":
			err = grow(path)
		case "env":
			for _, e := range os.Environ() {
				fmt.Println(e)
			}
		case "stay": // long enough to be seen in /proc
			time.Sleep(time.Second)
		case "id":
			fmt.Println(os.Getuid(), os.Getgid(), filepath.Base(must(os.Getwd())))
		case "argv":
			fmt.Printf("%q\n", os.Args)
		case "interfaces":
			list, listErr := net.Interfaces()
			err = listErr
			for _, i := range list {
				fmt.Println(i.Name)
			}
		case "search":
			err = search(rest)
		case "end": // what follows is only printed by argv
			return nil
		case "exit":
			code, convErr := strconv.Atoi(rest)
			if convErr != nil {
				return convErr
			}
			os.Exit(code)
		default:
			err = fmt.Errorf("unknown instruction %q", a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func must(s string, err error) string {
	if err != nil {
		return err.Error()
	}
	return s
}

// grow writes files until it is stopped.
func grow(dir string) error {
	piece := bytes.Repeat([]byte("x"), 32<<20)
	for i := 0; ; i++ {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), piece, 0o644); err != nil {
			return err
		}
	}
}

// search looks for a text in every name and every readable regular file that isn't the kernel's.
func search(text string) error {
	return filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		switch {
		case path == "/proc" || path == "/sys" || path == "/dev":
			return fs.SkipDir
		case strings.Contains(path, text) || path == "/var/run/docker.sock" || path == "/run/docker.sock":
			return fmt.Errorf("found %s", path)
		case err != nil || !d.Type().IsRegular() || path == "/subject":
			return nil
		}
		b, err := os.ReadFile(path)
		if err == nil && bytes.Contains(b, []byte(text)) {
			return fmt.Errorf("%s holds it", path)
		}
		return nil
	})
}
