// Package lint guards the tree: who may import whom, what tests and library
// code must not do, and that the documentation says what is true. It has tests
// only. Each rule runs twice: on the tree itself, where it must find nothing,
// and on a bad tree in testdata, where it must find exactly what that archive
// lists, so that no rule can fall asleep.
package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

const (
	root   = "../.." // of the tree, seen from this folder
	module = "github.com/ibsm/ibsm"
)

// rules by the name of their bad tree, testdata/NAME.txtar. Each returns what
// it finds, one line for each violation: where, what, and how to put it right.
var rules = map[string]func(*tree) []string{
	"benchmarks":   benchmarks,
	"bubbles":      bubbles,
	"dependencies": dependencies,
	"imports":      imports,
	"length":       length,
	"links":        links,
	"names":        names,
	"quiet":        quiet,
	"readme":       readme,
	"seeds":        seeds,
	"snippets":     snippets,
}

func TestTree(t *testing.T) {
	tr := load(t, os.DirFS(root))
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		t.Run(name, func(t *testing.T) {
			for _, violation := range rules[name](tr) {
				t.Error(violation)
			}
		})
	}
}

func TestRulesFindWhatIsBad(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		t.Run(name, func(t *testing.T) {
			fsys, want := archive(t, "testdata/"+name+".txtar")
			got := rules[name](load(t, fsys))
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("violations differ from the archive's list (-want +got):\n%s", diff)
			}
			if len(want) == 0 {
				t.Error("the archive lists no violation")
			}
		})
	}
}

// archive reads a bad tree. The text before its first file is the sorted list
// of the violations in it.
func archive(t *testing.T, file string) (fs.FS, []string) {
	t.Helper()
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{}
	for _, f := range ar.Files {
		fsys[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return fsys, strings.Split(strings.TrimSpace(string(ar.Comment)), "\n")
}

// tree is the project as the rules see it. Paths are relative to its root, with
// forward slashes.
type tree struct {
	fsys     fs.FS
	fset     *token.FileSet
	files    []*goFile
	markdown []string
	gomods   []string
}

type goFile struct {
	path      string
	ast       *ast.File
	generated bool // has the "Code generated ... DO NOT EDIT." line
	lines     int
}

// load reads a tree. Reading every folder also tells the go command's test
// cache what these tests depend on.
func load(t *testing.T, fsys fs.FS) *tree {
	t.Helper()
	tr := &tree{fsys: fsys, fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		base := path.Base(p)
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (base[0] == '.' || base[0] == '_' || base == "bin" || base == "testdata"):
			return fs.SkipDir
		case path.Ext(p) == ".md":
			tr.markdown = append(tr.markdown, p)
		case base == "go.mod":
			tr.gomods = append(tr.gomods, p)
		case path.Ext(p) == ".go":
			src, err := fs.ReadFile(fsys, p)
			if err != nil {
				return err
			}
			f, err := parser.ParseFile(tr.fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			tr.files = append(tr.files, &goFile{p, f, ast.IsGenerated(f), strings.Count(string(src), "\n")})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// text is a file's content, "" if there is no such file.
func (t *tree) text(name string) string {
	b, _ := fs.ReadFile(t.fsys, name)
	return string(b)
}

// at formats a violation in a Go file.
func (t *tree) at(pos token.Pos, format string, args ...any) string {
	p := t.fset.Position(pos)
	return fmt.Sprintf("%s:%d: ", p.Filename, p.Line) + fmt.Sprintf(format, args...)
}

func (f *goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// dir is the package's folder, which is its import path in the module.
func (f *goFile) dir() string { return path.Dir(f.path) }

// uses calls fn for each name of the package with this import path in n, which
// is a part of f.
func (f *goFile) uses(n ast.Node, importPath string, fn func(*ast.SelectorExpr)) {
	local := ""
	for _, spec := range f.ast.Imports {
		if p, _ := strconv.Unquote(spec.Path.Value); p == importPath {
			local = path.Base(p)
			if spec.Name != nil {
				local = spec.Name.Name
			}
		}
	}
	if local == "" {
		return
	}
	ast.Inspect(n, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local {
				fn(sel)
			}
		}
		return true
	})
}
