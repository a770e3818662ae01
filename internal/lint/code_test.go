package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
)

const maxLines = 700

// length: a hand-written file stays short enough to be read in one go.
func length(t *tree) (bad []string) {
	for _, f := range t.files {
		if !f.generated && f.lines > maxLines {
			bad = append(bad, fmt.Sprintf("%s: %d lines, at most %d: split it", f.path, f.lines, maxLines))
		}
	}
	return bad
}

// names: a package is named for what it holds.
func names(t *tree) (bad []string) {
	vague := []string{"common", "helper", "helpers", "misc", "util", "utils"}
	for _, f := range t.files {
		if name := f.ast.Name.Name; slices.Contains(vague, name) {
			bad = append(bad, t.at(f.ast.Name.Pos(), "package %s says nothing of what it holds: name it for that", name))
		}
	}
	return bad
}

// quiet: library code neither prints nor exits; that is for programs.
func quiet(t *tree) (bad []string) {
	forbidden := map[string][]string{
		"fmt": {"Print", "Printf", "Println"},
		"os":  {"Exit", "Stdout", "Stderr"},
	}
	for _, f := range t.files {
		if f.isTest() || f.ast.Name.Name == "main" {
			continue
		}
		report := func(pos token.Pos, name string) {
			bad = append(bad, t.at(pos, "%s in library code: return an error, or take an io.Writer", name))
		}
		for _, spec := range f.ast.Imports {
			if spec.Path.Value == `"log"` {
				report(spec.Pos(), "package log")
			}
		}
		for pkg, names := range forbidden {
			f.uses(f.ast, pkg, func(sel *ast.SelectorExpr) {
				if slices.Contains(names, sel.Sel.Name) {
					report(sel.Pos(), pkg+"."+sel.Sel.Name)
				}
			})
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if id, ok := call.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
					report(id.Pos(), "builtin "+id.Name)
				}
			}
			return true
		})
	}
	return bad
}

// bubbles: a test waits by the clock only in virtual time, that is
//   - in a function literal given to synctest.Test,
//   - in one of a table of cases in the function that makes the bubble, or
//   - in a function that itself calls synctest.Wait, which panics elsewhere.
func bubbles(t *tree) (bad []string) {
	for _, f := range t.files {
		if !f.isTest() {
			continue
		}
		for _, decl := range f.ast.Decls {
			virtual := f.bubbled(decl)
			f.uses(decl, "time", func(sel *ast.SelectorExpr) {
				switch sel.Sel.Name {
				case "Sleep", "After", "Tick":
					if !slices.ContainsFunc(virtual, func(fn ast.Node) bool {
						return fn.Pos() <= sel.Pos() && sel.Pos() < fn.End()
					}) {
						bad = append(bad, t.at(sel.Pos(), "time.%s outside a synctest bubble: wait for the event itself, or use virtual time", sel.Sel.Name))
					}
				}
			})
		}
	}
	return bad
}

// bubbled gives the functions in decl that run in bubbles.
func (f *goFile) bubbled(decl ast.Decl) (virtual []ast.Node) {
	var cases []ast.Node // function literals in tables
	makesBubble := false
	ast.PreorderStack(decl, nil, func(n ast.Node, stack []ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			f.uses(n.Fun, "testing/synctest", func(sel *ast.SelectorExpr) {
				if sel != n.Fun {
					return
				}
				switch sel.Sel.Name {
				case "Test":
					makesBubble = true
					if lit, ok := n.Args[1].(*ast.FuncLit); ok {
						virtual = append(virtual, lit)
					}
				case "Wait":
					virtual = append(virtual, innermostFunc(stack))
				}
			})
		case *ast.FuncLit:
			switch stack[len(stack)-1].(type) {
			case *ast.CompositeLit, *ast.KeyValueExpr:
				cases = append(cases, n)
			}
		}
		return true
	})
	if makesBubble {
		virtual = append(virtual, cases...)
	}
	return virtual
}

func innermostFunc(stack []ast.Node) ast.Node {
	for _, n := range slices.Backward(stack) {
		switch n.(type) {
		case *ast.FuncLit, *ast.FuncDecl:
			return n
		}
	}
	return stack[0]
}

// seeds: every fuzz target starts from known inputs, by F.Add, in itself or in a
// function of its package that it hands its F to, or from a corpus in testdata.
func seeds(t *tree) (bad []string) {
	funcs := map[string]*ast.FuncDecl{} // folder + "." + name
	for _, f := range t.files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && f.isTest() {
				funcs[f.dir()+"."+fn.Name.Name] = fn
			}
		}
	}
	for _, f := range t.files {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !isFuzz(fn) {
				continue
			}
			corpus, _ := fs.ReadDir(t.fsys, path.Join(f.dir(), "testdata/fuzz", fn.Name.Name))
			if len(corpus) == 0 && !addsSeeds(fn, f.dir(), funcs, nil) {
				bad = append(bad, t.at(fn.Pos(), "%s has no seeds: call Add with valid and broken inputs", fn.Name.Name))
			}
		}
	}
	return bad
}

func isFuzz(fn *ast.FuncDecl) bool {
	return fuzzParam(fn) != "" && len(fn.Name.Name) > 4 && fn.Name.Name[:4] == "Fuzz"
}

// fuzzParam is the name of fn's parameter of type *testing.F, "" if it has none.
func fuzzParam(fn *ast.FuncDecl) string {
	for _, p := range fn.Type.Params.List {
		if star, ok := p.Type.(*ast.StarExpr); ok && len(p.Names) > 0 {
			if sel, ok := star.X.(*ast.SelectorExpr); ok && sel.Sel.Name == "F" {
				return p.Names[0].Name
			}
		}
	}
	return ""
}

func addsSeeds(fn *ast.FuncDecl, dir string, funcs map[string]*ast.FuncDecl, seen []*ast.FuncDecl) (found bool) {
	param := fuzzParam(fn)
	if param == "" || slices.Contains(seen, fn) {
		return false
	}
	isParam := func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return ok && id.Name == param
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return !found
		}
		switch callee := call.Fun.(type) {
		case *ast.SelectorExpr:
			found = found || callee.Sel.Name == "Add" && isParam(callee.X)
		case *ast.Ident:
			if next := funcs[dir+"."+callee.Name]; next != nil && slices.ContainsFunc(call.Args, isParam) {
				found = found || addsSeeds(next, dir, funcs, append(seen, fn))
			}
		}
		return !found
	})
	return found
}

// imported gives the import paths of a file with their positions.
func imported(f *goFile) map[string]token.Pos {
	paths := map[string]token.Pos{}
	for _, spec := range f.ast.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		paths[p] = spec.Pos()
	}
	return paths
}
