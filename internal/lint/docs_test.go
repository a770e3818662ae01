package lint

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	inlineLink    = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	referenceLink = regexp.MustCompile(`^\[[^\]]+\]:\s+(\S+)`)
	codeSpan      = regexp.MustCompile("`[^`]*`")
)

// links: a relative link in a Markdown file leads to a file, and to a heading
// in it. Links to other sites are not followed.
func links(t *tree) (bad []string) {
	for _, doc := range t.markdown {
		for i, line := range prose(t.text(doc)) {
			line = codeSpan.ReplaceAllString(line, "")
			for _, m := range append(inlineLink.FindAllStringSubmatch(line, -1), referenceLink.FindAllStringSubmatch(line, -1)...) {
				if why := t.broken(doc, m[1]); why != "" {
					bad = append(bad, fmt.Sprintf("%s:%d: link to %s: %s", doc, i+1, m[1], why))
				}
			}
		}
	}
	return bad
}

// broken says what is wrong with a link in doc, "" if nothing is.
func (t *tree) broken(doc, link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return err.Error()
	}
	if u.Scheme != "" {
		return ""
	}
	target := doc
	if u.Path != "" {
		target = path.Join(path.Dir(doc), u.Path)
	}
	if _, err := fs.Stat(t.fsys, target); err != nil {
		return "no such file"
	}
	if u.Fragment != "" && !slices.Contains(anchors(t.text(target)), u.Fragment) {
		return "no such heading"
	}
	return ""
}

// anchors gives the link fragments of a text's headings as GitHub makes them.
func anchors(text string) (fragments []string) {
	for _, line := range prose(text) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		fragments = append(fragments, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(strings.TrimLeft(line, "#"))))
	}
	return fragments
}

// prose gives the lines of a Markdown text with those of code blocks blanked.
func prose(text string) []string {
	lines := strings.Split(text, "\n")
	inCode := false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence || inCode {
			lines[i] = ""
		}
		inCode = inCode != fence
	}
	return lines
}

const dependencyPage = "docs/dependencies.md"

// dependencies: the first column of the tables in docs/dependencies.md names
// the modules that a go.mod of the tree requires directly or for a tool, and no
// others.
func dependencies(t *tree) (bad []string) {
	var documented []string
	for line := range strings.Lines(t.text(dependencyPage)) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			documented = append(documented, codeSpans(cells[1])...)
		}
	}
	var all []string
	for _, file := range t.gomods {
		required, err := requirements(t.text(file))
		if err != nil {
			return []string{file + ": " + err.Error()}
		}
		for _, m := range required {
			if !slices.Contains(documented, m) {
				bad = append(bad, fmt.Sprintf("%s: %s is a direct dependency without a reason: add a row to %s", file, m, dependencyPage))
			}
		}
		all = append(all, required...)
	}
	for _, m := range documented {
		if !slices.Contains(all, m) {
			bad = append(bad, fmt.Sprintf("%s: %s is not a direct dependency in any go.mod: remove its row", dependencyPage, m))
		}
	}
	return bad
}

// requirements lists the modules that a go.mod requires directly, and those
// that hold its tools.
func requirements(gomod string) (modules []string, err error) {
	dir, err := os.MkdirTemp("", "lint")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "go.mod")
	if err := os.WriteFile(file, []byte(gomod), 0o600); err != nil {
		return nil, err
	}
	out, err := exec.Command("go", "mod", "edit", "-json", file).Output()
	if err != nil {
		return nil, fmt.Errorf("go mod edit -json: %w", err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Tool []struct{ Path string }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		return nil, err
	}
	for _, r := range mod.Require {
		isTool := false
		for _, tool := range mod.Tool {
			isTool = isTool || strings.HasPrefix(tool.Path, r.Path+"/")
		}
		if !r.Indirect || isTool {
			modules = append(modules, r.Path)
		}
	}
	return modules, nil
}

// benchmarks: every row of bench/run's table names a benchmark that exists.
func benchmarks(t *tree) (bad []string) {
	row := regexp.MustCompile(`^\s*(?:kernel_)?row\s+'[^']+'\s+\./(\S+)\s+(Benchmark\w+)`)
	found := false
	for i, line := range strings.Split(t.text("bench/run"), "\n") {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		found = true
		if !t.declares(m[1], m[2]) {
			bad = append(bad, fmt.Sprintf("bench/run:%d: no %s in %s", i+1, m[2], m[1]))
		}
	}
	if !found {
		bad = append(bad, "bench/run: no rows of the form: row 'WHAT' ./FOLDER BENCHMARK UNIT")
	}
	return bad
}

// declares tells whether a test file in dir declares the function name.
func (t *tree) declares(dir, name string) bool {
	for _, f := range t.files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.isTest() && f.dir() == dir && fn.Name.Name == name {
				return true
			}
		}
	}
	return false
}

// snippets: a block of Go in a Markdown file stands, indentation aside, in a
// test file of this tree too, where it is compiled.
func snippets(t *tree) (bad []string) {
	block := regexp.MustCompile("(?ms)^```go\n(.*?)^```")
	for _, doc := range t.markdown {
		text := t.text(doc)
		for _, m := range block.FindAllStringSubmatchIndex(text, -1) {
			snippet := unindent(text[m[2]:m[3]])
			if strings.TrimSpace(snippet) == "" || !slices.ContainsFunc(t.files, func(f *goFile) bool {
				return f.isTest() && strings.Contains(unindent(t.text(f.path)), snippet)
			}) {
				line := strings.Count(text[:m[0]], "\n") + 1
				bad = append(bad, fmt.Sprintf("%s:%d: this Go code is in no test file: make it part of an example", doc, line))
			}
		}
	}
	return bad
}

func unindent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}

// readmeExample finds the README's first command, the output it shows for it,
// and its second command, which runs the tests.
func readmeExample(text string) (command, output, test string, err error) {
	fence := regexp.MustCompile("(?ms)^```(sh|text)\n(.*?)^```")
	blocks := fence.FindAllStringSubmatch(text, -1)
	if len(blocks) < 3 || blocks[0][1] != "sh" || blocks[1][1] != "text" || blocks[2][1] != "sh" {
		return "", "", "", fmt.Errorf("its first code blocks must be sh (the main job), text (its output) and sh (the tests)")
	}
	return strings.TrimSpace(blocks[0][2]), strings.TrimSpace(blocks[1][2]), strings.TrimSpace(blocks[2][2]), nil
}

// readme: the README starts with the main job, its output and the test command,
// and continuous integration runs that very command.
func readme(t *tree) (bad []string) {
	_, output, test, err := readmeExample(t.text("README.md"))
	if err != nil {
		return []string{"README.md: " + err.Error()}
	}
	if output == "" {
		bad = append(bad, "README.md: the first command's output is empty")
	}
	if !slices.Contains(strings.Split(t.text(".ci/run"), "\n"), test) {
		bad = append(bad, fmt.Sprintf(".ci/run: has no line %q, the README's test command", test))
	}
	return bad
}

// TestREADME runs the README's first command and compares what it prints.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if err := runsAsShown(t, string(text)); err != nil {
		t.Error(err)
	}
}

func TestREADMECanFail(t *testing.T) {
	const shown = "```sh\ngo list -m\n```\n```text\n%s\n```\n```sh\nmake test\n```\n"
	if err := runsAsShown(t, fmt.Sprintf(shown, module)); err != nil {
		t.Errorf("true output refused: %v", err)
	}
	if err := runsAsShown(t, fmt.Sprintf(shown, "something else")); err == nil {
		t.Error("false output accepted")
	}
	if err := runsAsShown(t, fmt.Sprintf(strings.Replace(shown, "-m", "-no-such-flag", 1), "")); err == nil {
		t.Error("failing command accepted")
	}
}

// timeless leaves out of an output what is another each time: times in parts of a
// second, with the blanks that line them up, and made-up QPNs.
func timeless(s string) string {
	s = regexp.MustCompile(` *[\d.]+[nµm]s`).ReplaceAllString(s, " T")
	return regexp.MustCompile(`QPN 0x[0-9a-f]{6}( to 0x[0-9a-f]{6})?`).ReplaceAllString(s, "QPN")
}

func runsAsShown(t *testing.T, text string) error {
	command, want, _, err := readmeExample(text)
	if err != nil {
		return err
	}
	words := strings.Fields(command)
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, stderr.String())
	}
	if got := strings.TrimSpace(string(out)); timeless(got) != timeless(want) {
		return fmt.Errorf("%s prints\n%s\nbut the README shows\n%s", command, got, want)
	}
	return nil
}
