package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ulikunitz/xz"
)

// series of kernels that the tests run on: what Debian 12 starts with, and what
// Debian 13 has and 12 offers.
var series = []string{"6.1", "6.12"}

// wanted are the modules that the guest loads, after those they depend on.
var wanted = []string{
	"crc32_generic", // rdma_rxe asks for it by its algorithm's name, which no dependency shows; without it adding a link fails with ENOENT
	"veth",
	"virtio_pci", // the bus that virtio_net needs, which no dependency shows
	"virtio_net",
	"rdma_rxe",
	"ib_umad",
	"ib_uverbs",
	"rdma_ucm",
}

// A kernel that is ready to boot: an image and its modules, whose file names
// sort in the order of loading.
type kernel struct {
	series  string
	vmlinuz string
	modules []string
}

// cacheDir holds a kernel's files. It is the user's cache and not in the tree,
// so that a fresh clone has them too.
func cacheDir(series string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "ibsm", "kernels", series), nil
}

// wantedFile in the cache holds the names that were wanted when it was filled.
const wantedFile = "wanted"

// cached finds a kernel in the cache, with all modules that are wanted now.
func cached(series string) (k kernel, err error) {
	dir, err := cacheDir(series)
	if err != nil {
		return k, err
	}
	missing := errMissing{"the kernel " + series, "'make deps' gets it on Debian"}
	k = kernel{series: series, vmlinuz: filepath.Join(dir, "vmlinuz")}
	if had, err := os.ReadFile(filepath.Join(dir, wantedFile)); err != nil || string(had) != strings.Join(wanted, "\n") {
		return k, missing
	}
	if _, err := os.Stat(k.vmlinuz); err != nil {
		return k, missing
	}
	k.modules, err = filepath.Glob(filepath.Join(dir, "*.ko"))
	return k, err
}

// fetch puts the kernels into the cache that are not there.
func (r *rig) fetch(ctx context.Context, all []string) error {
	for _, s := range all {
		_, err := cached(s)
		if _, missing := err.(errMissing); !missing {
			if err != nil {
				return err
			}
			continue
		}
		if _, err := exec.LookPath("apt-get"); err != nil {
			r.missing = append(r.missing, errMissing{"the kernel " + s, "it comes from Debian's packages, and here is no apt-get"})
			continue
		}
		pkg, err := download(ctx, s)
		if err != nil { // apt's lists of packages may be missing or old
			exec.CommandContext(ctx, "apt-get", "update").Run()
			pkg, err = download(ctx, s)
		}
		if err != nil {
			r.missing = append(r.missing, errMissing{"the kernel " + s, err.Error()})
			continue
		}
		r.printf("kernelrig: %s is in the cache now\n", pkg)
	}
	return nil
}

// download gets Debian's newest package of a series, without installing it, and
// keeps what the guest needs of it.
func download(ctx context.Context, series string) (pkg string, err error) {
	pkg, err = packageName(ctx, series)
	if err != nil {
		return "", err
	}
	dest, err := cacheDir(series)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dest), "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)

	get := exec.CommandContext(ctx, "apt-get", "--quiet", "download", pkg)
	get.Dir = tmp
	if _, err := get.Output(); err != nil {
		return "", failed(get, err)
	}
	debs, err := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if err != nil || len(debs) != 1 {
		return "", fmt.Errorf("apt-get download %s left %d packages (%v)", pkg, len(debs), err)
	}
	tree := filepath.Join(tmp, "tree")
	unpack := exec.CommandContext(ctx, "dpkg-deb", "--extract", debs[0], tree)
	if _, err := unpack.Output(); err != nil {
		return "", failed(unpack, err)
	}
	kept := filepath.Join(tmp, "kept")
	if err := keep(tree, kept); err != nil {
		return "", fmt.Errorf("%s: %w", pkg, err)
	}
	if err := os.RemoveAll(dest); err != nil {
		return "", err
	}
	return pkg, os.Rename(kept, dest)
}

// packageName asks apt which package the newest kernel of a series is in. The
// packages that always depend on the newest have either of two names: one for
// the kernel that Debian's release came with, one for those offered beside it.
func packageName(ctx context.Context, series string) (string, error) {
	name := regexp.MustCompile(`Depends: (linux-image-` + regexp.QuoteMeta(series) + `\.\S+)`)
	for _, meta := range []string{"linux-image-amd64", "linux-image-" + series + "-amd64"} {
		out, err := exec.CommandContext(ctx, "apt-cache", "depends", meta).Output()
		if m := name.FindSubmatch(out); err == nil && m != nil {
			return string(m[1]), nil
		}
	}
	return "", fmt.Errorf("apt knows no package with a kernel %s", series)
}

// keep copies from an unpacked package the kernel's image and the wanted modules
// with what they depend on.
func keep(tree, dest string) error {
	if err := os.Mkdir(dest, 0o755); err != nil {
		return err
	}
	image := ""
	files := map[string]string{} // by the module's name
	builtIn := map[string]bool{}
	err := filepath.WalkDir(tree, func(p string, d fs.DirEntry, err error) error {
		base := filepath.Base(p)
		if name, _, ok := strings.Cut(base, ".ko"); ok && !d.IsDir() {
			files[moduleName(name)] = p
		} else if strings.HasPrefix(base, "vmlinuz-") {
			image = p
		} else if base == "modules.builtin" {
			list, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(list)) { // kernel/drivers/virtio/virtio_pci.ko
				builtIn[moduleName(strings.TrimSuffix(path.Base(strings.TrimSpace(line)), ".ko"))] = true
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if image == "" {
		return fmt.Errorf("it has no vmlinuz")
	}
	order, err := loadOrder(wanted, func(name string) ([]byte, error) {
		if files[name] == "" && builtIn[name] {
			return nil, nil
		} else if files[name] == "" {
			return nil, fmt.Errorf("it has no module %s", name)
		}
		return readModule(files[name])
	})
	if err != nil {
		return err
	}
	for i, m := range order {
		if err := os.WriteFile(filepath.Join(dest, fmt.Sprintf("%02d-%s.ko", i, m.name)), m.content, 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dest, wantedFile), []byte(strings.Join(wanted, "\n")), 0o644); err != nil {
		return err
	}
	return os.Rename(image, filepath.Join(dest, "vmlinuz"))
}

// readModule reads a module's file, which newer packages compress.
func readModule(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(file, ".xz") {
		if r, err = xz.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return content, nil
}
