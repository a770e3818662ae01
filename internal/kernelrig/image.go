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
	"slices"

	"github.com/u-root/u-root/pkg/cpio"

	"github.com/ibsm/ibsm/internal/kernelrig/plan"
)

// sources is the guest's folder of test binaries, by package.
const sources = "src"

// An image is what goes into the guest on every kernel.
type image struct {
	files []file
	tests map[string][]file // by package, for those plans that need it
}

// A file, folder or symbolic link of the host and its path in the guest.
type file struct{ host, guest string }

// build compiles the guest's programs into the work folder.
func build(ctx context.Context, root, work string, suites []suite) (img image, err error) {
	work, err = filepath.Abs(work)
	if err != nil {
		return img, err
	}
	compile := func(guest, module, pkg string, verb ...string) (file, error) {
		host := filepath.Join(work, "bin", guest)
		cmd := goCommand(ctx, module, append(verb, "-ldflags=-s -w", "-o", host, pkg)...)
		if _, err := cmd.Output(); err != nil {
			return file{}, failed(cmd, err)
		}
		return file{host, guest}, nil
	}
	first, err := compile("init", filepath.Join(root, "internal", "kernelrig"), "./guest", "build")
	if err != nil {
		return img, err
	}
	command, err := compile("bin/ibsm", root, "./cmd/ibsm", "build")
	if err != nil {
		return img, err
	}
	img = image{files: []file{first, command}, tests: map[string][]file{}}
	for _, s := range suites {
		dir := path.Join(sources, s.pkg)
		binary, err := compile(path.Join(dir, "test"), s.module, s.dir, "test", "-c", "-vet=off")
		if err != nil {
			return img, err
		}
		data, err := testdata(s.dir, dir)
		if err != nil {
			return img, err
		}
		img.tests[s.pkg] = append(data, binary)
	}
	return img, nil
}

// testdata lists the files that a package's tests may read, apart from seeds for
// fuzzing.
func testdata(dir, guest string) (files []file, err error) {
	const top = "testdata"
	if _, err := os.Stat(filepath.Join(dir, top)); err != nil {
		return nil, nil
	}
	err = fs.WalkDir(os.DirFS(dir), top, func(p string, d fs.DirEntry, err error) error {
		if err == nil && p == top+"/fuzz" {
			return fs.SkipDir
		}
		files = append(files, file{filepath.Join(dir, p), path.Join(guest, p)})
		return err
	})
	return files, err
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
		cpio.Symlink("bin/meet", "/init"),
	}
	files := slices.Clone(img.files)
	for i, t := range p.Tests {
		if !slices.ContainsFunc(p.Tests[:i], func(before plan.Test) bool { return before.Package == t.Package }) {
			files = append(files, img.tests[t.Package]...)
		}
	}
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
