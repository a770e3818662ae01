package script

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// loader reads a script with what it includes. A file that several steps include
// is read once.
type loader struct {
	fsys  fs.FS // nil: the operating system's
	files map[string]*Script
	depth map[string]int // files in each other in one that was read, itself counted
	chain []string       // the files that are being read, each included by the one before
	errs  *errorSink
}

// errNotRegular is for what is no file, such as a device that never ends.
var errNotRegular = errors.New("it is no regular file")

// read gives the bytes of a file, one more than are allowed at most.
func (l *loader) read(name string) ([]byte, error) {
	open := func() (fs.File, error) { return l.fsys.Open(name) }
	stat := func() (fs.FileInfo, error) { return fs.Stat(l.fsys, name) }
	if l.fsys == nil {
		open = func() (fs.File, error) { return os.Open(name) }
		stat = func() (fs.FileInfo, error) { return os.Stat(name) }
	}
	// To open a named pipe would wait for its writer.
	info, err := stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: name, Err: errNotRegular}
	}
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	f, err := open()
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	return data, nil
}

// parse makes the script of a file.
func (l *loader) parse(name string, data []byte) *Script {
	root := readYAML(name, data, l.errs)
	if root == nil {
		return nil
	}
	l.chain = append(l.chain, name)
	defer func() { l.chain = l.chain[:len(l.chain)-1] }()
	p := &composer{loader: l, file: name, errs: l.errs}
	return p.document(root)
}

// include reads the file that a step names, seen from the file that the step is
// in; nil if it cannot, and errs says why.
func (l *loader) include(from string, file Word) *Script {
	name := file.Text
	if l.fsys != nil {
		name = path.Join(path.Dir(from), name)
	} else if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(from), name)
	}
	for i, open := range l.chain {
		if open == name {
			l.errs.add("include-cycle", file.Pos, "%s includes itself: %s", name, strings.Join(append(l.chain[i:], name), " -> "))
			return nil
		}
	}
	s, known := l.files[name]
	switch {
	case len(l.chain)+max(l.depth[name], 1) > MaxIncludeDepth+1:
		l.errs.add("include-depth", file.Pos, "more than %d files in each other", MaxIncludeDepth)
		return nil
	case known:
		l.contain(name)
		return s
	case len(l.files) >= MaxFiles:
		l.errs.add("include-files", file.Pos, "more than %d files are included", MaxFiles)
		return nil
	}
	data, err := l.read(name)
	if err != nil {
		l.errs.add("include-read", file.Pos, "%v", err)
		return nil
	}
	s = l.parse(name, data)
	l.files[name] = s
	l.contain(name)
	return s
}

// contain notes that the innermost open file includes another.
func (l *loader) contain(name string) {
	l.depth[name] = max(l.depth[name], 1)
	in := l.chain[len(l.chain)-1]
	l.depth[in] = max(l.depth[in], l.depth[name]+1)
}
