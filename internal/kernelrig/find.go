package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// A suite is a package with tests for the guest.
type suite struct {
	module string // folder of the Go module that holds it
	pkg    string // folder of the package, relative to the tree's root
	dir    string // the same, absolute
}

var kernelTest = regexp.MustCompile(`(?m)^func (TestKernel\w*)\(\w+ \*testing\.T\)`)

// find lists the packages of the tree, and of this rig, that have a test for the
// guest that matches run.
func find(ctx context.Context, root, run string) (suites []suite, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(run, "/") // as go test reads it: then come subtests
	match, err := regexp.Compile(first)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	for _, module := range []string{root, filepath.Join(root, "internal", "kernelrig")} {
		cmd := goCommand(ctx, module, "list", "-f",
			`{{.Dir}}{{range .TestGoFiles}}|{{.}}{{end}}{{range .XTestGoFiles}}|{{.}}{{end}}`, "./...")
		out, err := cmd.Output()
		if err != nil {
			return nil, failed(cmd, err)
		}
		for line := range strings.Lines(string(out)) {
			fields := strings.Split(strings.TrimSpace(line), "|")
			dir, files := fields[0], fields[1:]
			has, err := declares(dir, files, match)
			if err != nil {
				return nil, err
			}
			if !has {
				continue
			}
			pkg, err := filepath.Rel(root, dir)
			if err != nil {
				return nil, err
			}
			suites = append(suites, suite{module, filepath.ToSlash(pkg), dir})
		}
	}
	if len(suites) == 0 {
		return nil, fmt.Errorf("no test TestKernel... matches %q", run)
	}
	return suites, nil
}

func declares(dir string, files []string, match *regexp.Regexp) (bool, error) {
	for _, file := range files {
		src, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return false, err
		}
		for _, m := range kernelTest.FindAllSubmatch(src, -1) {
			if match.Match(m[1]) {
				return true, nil
			}
		}
	}
	return false, nil
}

// goCommand is the go command for what runs in the guest: static programs.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	return cmd
}

// failed adds to a command's error which it was and what it said.
func failed(cmd *exec.Cmd, err error) error {
	said := ""
	if exit, ok := err.(*exec.ExitError); ok {
		said = "\n" + strings.TrimSpace(string(exit.Stderr))
	}
	return fmt.Errorf("%s: %w%s", strings.Join(cmd.Args, " "), err, said)
}
