package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app"
)

// shell runs a line as a user does and gives what it prints on both streams.
func shell(t *testing.T, line string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Env = append(os.Environ(), "IBSM_ON=sim:demo")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// levels gives the words that lead to the command and to all below it.
func levels(words string, commands []*cli.Command) []string {
	all := []string{words}
	for _, c := range commands {
		all = append(all, levels(words+" "+c.Name, c.Subcommands)...)
	}
	return all
}

// flags gives the flags of all commands.
func flags(commands []*cli.Command) (all []cli.Flag) {
	for _, c := range commands {
		all = slices.Concat(all, c.Flags, flags(c.Subcommands))
	}
	return all
}

func newApp() *cli.App {
	return app.New(app.Host{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}})
}

// Every example in the help of every level does what it says: it runs.
func TestHelpExamples(t *testing.T) {
	t.Parallel()
	for _, words := range levels("ibsm", newApp().Commands) {
		help, err := shell(t, words+" --help")
		if err != nil {
			t.Fatalf("%s --help: %v\n%s", words, err, help)
		}
		_, text, found := strings.Cut(help, "Examples:\n")
		if isNoun := strings.Contains(help, "COMMANDS:") && words != "ibsm"; !found && !isNoun {
			t.Errorf("%s --help has no examples", words)
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "ibsm ") {
				continue
			}
			if out, err := shell(t, line); err != nil || out == "" {
				t.Errorf("%s --help: %s: %v\n%s", words, line, err, out)
			}
			if words != "ibsm" && !strings.Contains(line, strings.TrimPrefix(words, "ibsm")) {
				t.Errorf("%s --help: %s is an example of something else", words, line)
			}
		}
	}
}

func manual(t *testing.T) string { return document(t, "docs/command.md") }

func document(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The manual has everything that there is.
func TestManualIsComplete(t *testing.T) {
	text := manual(t)
	wants := []string{"`--help`", "`-h`", "`--version`", `"ibsm/1"`, "`IBSM_ON`"}
	a := newApp()
	for _, words := range levels("ibsm", a.Commands)[1:] {
		wants = append(wants, "## `"+words)
	}
	for _, f := range slices.Concat(a.Flags, flags(a.Commands)) {
		for _, name := range f.Names() {
			wants = append(wants, fmt.Sprintf("`%s%s", strings.Repeat("-", min(len(name), 2)), name))
		}
	}
	help, err := shell(t, "ibsm smp get --help")
	if err != nil {
		t.Fatal(err)
	}
	_, attributes, _ := strings.Cut(help, "ATTRIBUTE is one of")
	attributes, _, _ = strings.Cut(attributes, "ADDRESS is")
	for _, word := range strings.Fields(attributes) {
		if word = strings.Trim(word, ","); word[0] == '(' {
			wants = append(wants, "| "+strings.Trim(word, "()")+" |")
		} else {
			wants = append(wants, "`"+word+"`")
		}
	}
	for _, kind := range []string{"failed", "usage", "no_answer", "error_status", "expectation", "incomplete"} {
		wants = append(wants, "`"+kind+"`")
	}
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("docs/command.md does not have %s", want)
		}
	}
}

// What the manual and the README show is what ibsm prints: in blocks of "console", lines after
// "$ " are run, and what follows is their output; a line "..." stands for any
// number of lines. Times in micro- and milliseconds and made-up QPNs are others each
// time.
func TestManualExamples(t *testing.T) {
	t.Parallel()
	for _, doc := range []struct {
		path   string
		blocks int // at least
	}{{"docs/command.md", 5}, {"README.md", 1}} {
		blocks := regexp.MustCompile("(?ms)^```console\n(.*?)^```").FindAllStringSubmatch(document(t, doc.path), -1)
		if len(blocks) < doc.blocks {
			t.Fatalf("%s has only %d blocks of examples", doc.path, len(blocks))
		}
		for _, block := range blocks {
			runBlock(t, doc.path, block[1])
		}
	}
}

func runBlock(t *testing.T, path, block string) {
	for _, example := range strings.Split("\n"+block, "\n$ ")[1:] {
		line, want, _ := strings.Cut(example, "\n")
		out, err := shell(t, line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if !shownAs(want, out) {
			t.Errorf("%s prints\n%s\nand %s shows\n%s", line, out, path, want)
		}
	}
}

func shownAs(want, got string) bool {
	pattern := regexp.QuoteMeta(strings.TrimSpace(want))
	pattern = regexp.MustCompile(`(?m)^\\\.\\\.\\\.$`).ReplaceAllLiteralString(pattern, `(?s:.*)`)
	pattern = regexp.MustCompile(` *[\d\\.]+[mµ]s`).ReplaceAllLiteralString(pattern, ` *[\d.]+[mµ]s`)
	pattern = regexp.MustCompile(`QPN 0x[0-9a-f]{6} to 0x[0-9a-f]{6}`).ReplaceAllLiteralString(pattern, `QPN 0x[0-9a-f]{6} to 0x[0-9a-f]{6}`)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(strings.TrimSpace(got))
}

func TestShownAs(t *testing.T) {
	for _, tt := range []struct {
		want, got string
		ok        bool
	}{
		{"a\nb", "a\nb\n", true},
		{"a\n...\nd", "a\nb\nc\nd\n", true},
		{"a\n...", "b\na\n", false},
		{"a.b", "axb", false},
		{"a...b", "a, b", false},
		{"", "a", false},
		{"a    12µs  b", "a 1.234ms  b", true},
		{"a 12µs b", "a 12s b", false},
		{"QPN 0x8af073 to 0x8af074", "QPN 0x000001 to 0xffffff", true},
		{"QPN 0x8af073 to 0x8af074", "QPN 0x000001 to 1", false},
	} {
		if got := shownAs(tt.want, tt.got); got != tt.ok {
			t.Errorf("shownAs(%q, %q) = %t", tt.want, tt.got, got)
		}
	}
}
