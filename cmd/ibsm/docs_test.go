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

func manual(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/command.md")
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

// What the manual shows is what ibsm prints: in blocks of "console", lines after
// "$ " are run, and what follows is their output; a line "..." stands for any
// number of lines.
func TestManualExamples(t *testing.T) {
	t.Parallel()
	blocks := regexp.MustCompile("(?ms)^```console\n(.*?)^```").FindAllStringSubmatch(manual(t), -1)
	if len(blocks) < 5 {
		t.Fatalf("docs/command.md has only %d blocks of examples", len(blocks))
	}
	for _, block := range blocks {
		for _, example := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			line, want, _ := strings.Cut(example, "\n")
			out, err := shell(t, line)
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
			if !shownAs(want, out) {
				t.Errorf("%s prints\n%s\nand docs/command.md shows\n%s", line, out, want)
			}
		}
	}
}

func shownAs(want, got string) bool {
	pattern := regexp.QuoteMeta(strings.TrimSpace(want))
	pattern = regexp.MustCompile(`(?m)^\\\.\\\.\\\.$`).ReplaceAllLiteralString(pattern, `(?s:.*)`)
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
	} {
		if got := shownAs(tt.want, tt.got); got != tt.ok {
			t.Errorf("shownAs(%q, %q) = %t", tt.want, tt.got, got)
		}
	}
}
