package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/u-root/u-root/pkg/cpio"

	"github.com/ibsm/ibsm/internal/kernelrig/plan"
)

// An image is what goes into the guest on every kernel.
type image struct {
	files []file
	tests []plan.Test
}

// A file, folder or symbolic link of the host and its path in the guest.
type file struct{ host, guest string }

// build compiles the guest's programs into the work folder.
func build(ctx context.Context, root, work string, suites []suite) (img image, err error) {
	work, err = filepath.Abs(work)
	if err != nil {
		return img, err
	}
	compile := func(guest, module, pkg string, verb ...string) error {
		host := filepath.Join(work, "bin", guest)
		cmd := goCommand(ctx, module, append(verb, "-ldflags=-s -w", "-o", host, pkg)...)
		if _, err := cmd.Output(); err != nil {
			return failed(cmd, err)
		}
		img.files = append(img.files, file{host, guest})
		return nil
	}
	if err := compile("init", filepath.Join(root, "internal", "kernelrig"), "./guest", "build"); err != nil {
		return img, err
	}
	if err := compile("bin/ibsm", root, "./cmd/ibsm", "build"); err != nil {
		return img, err
	}
	for _, s := range suites {
		dir := path.Join("src", s.pkg)
		if err := compile(path.Join(dir, "test"), s.module, s.dir, "test", "-c", "-vet=off"); err != nil {
			return img, err
		}
		img.tests = append(img.tests, plan.Test{Package: s.pkg, Binary: path.Join("/", dir, "test"), Dir: path.Join("/", dir)})
		if err := img.addTestdata(s, dir); err != nil {
			return img, err
		}
	}
	return img, nil
}

// addTestdata takes along the files that a package's tests may read, apart from
// seeds for fuzzing.
func (img *image) addTestdata(s suite, guest string) error {
	const top = "testdata"
	if _, err := os.Stat(filepath.Join(s.dir, top)); err != nil {
		return nil
	}
	return fs.WalkDir(os.DirFS(s.dir), top, func(p string, d fs.DirEntry, err error) error {
		if err == nil && p == top+"/fuzz" {
			return fs.SkipDir
		}
		img.files = append(img.files, file{filepath.Join(s.dir, p), path.Join(guest, p)})
		return err
	})
}

// pack writes the file system that the kernel k starts with. It is not
// compressed: unpacking takes an emulated machine longer than copying.
func pack(name string, img image, k kernel, p plan.Plan) error {
	planned, err := json.Marshal(p)
	if err != nil {
		return err
	}
	records := []cpio.Record{
		cpio.Directory("dev", 0o755), cpio.Directory("proc", 0o755), cpio.Directory("sys", 0o755), cpio.Directory("tmp", 0o755),
		cpio.StaticFile(plan.Path[1:], string(planned), 0o644),
		cpio.Symlink("bin/rdma", "/init"),
	}
	files := img.files[:len(img.files):len(img.files)]
	for _, m := range k.modules {
		files = append(files, file{m, path.Join(plan.Modules[1:], filepath.Base(m))})
	}
	recorder := cpio.NewRecorder()
	for _, f := range files {
		rec, err := recorder.GetRecord(f.host)
		if err != nil {
			return err
		}
		rec.Name = f.guest
		records = append(records, rec)
	}

	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer out.Close()
	buffered := bufio.NewWriter(out)
	w := cpio.NewDedupWriter(cpio.Newc.Writer(buffered))
	if err := cpio.WriteRecordsAndDirs(w, records); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := cpio.WriteTrailer(w); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return out.Close()
}
