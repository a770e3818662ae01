package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// library is a line of ldd: "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)",
// or the path alone for the loader.
var library = regexp.MustCompile(`(?m)(/\S+) \(0x[0-9a-f]+\)$`)

// A provider drives devices for libibverbs, which finds it by the name in a file and
// loads it when it runs: ldd does not know.
const (
	verbs        = "libibverbs.so"
	providerName = "/etc/libibverbs.d/rxe.driver"
	provider     = "libibverbs/librxe-rdmav*.so" // beside libibverbs, where it really is
)

// program lists the files that a program of this host needs in the guest.
func program(ctx context.Context, name string) (files []file, err error) {
	executable, err := exec.LookPath(name)
	if err != nil {
		return nil, errMissing{name, "cmtime, say, is in Debian's package rdmacm-utils"}
	}
	if executable, err = filepath.Abs(executable); err != nil {
		return nil, err
	}
	ldd := exec.CommandContext(ctx, "ldd", executable)
	out, err := ldd.Output()
	if err != nil {
		return nil, failed(ldd, err)
	}
	// From a library's path in the guest to the file, past symbolic links.
	add := func(path, guest string) error {
		host, err := filepath.EvalSymlinks(path)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, file{host, guest[1:]})
		return nil
	}
	if err := add(executable, "/bin/"+filepath.Base(executable)); err != nil {
		return nil, err
	}
	for _, m := range library.FindAllStringSubmatch(string(out), -1) {
		if err := add(m[1], m[1]); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(filepath.Base(m[1]), verbs) {
			continue
		}
		found, err := filepath.Glob(filepath.Join(filepath.Dir(files[len(files)-1].host), provider))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, errMissing{name, "it needs libibverbs' provider for rxe, which is in Debian's package ibverbs-providers"}
		}
		for _, p := range append(found, providerName) {
			if err := add(p, p); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}
