package run

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ibsm/ibsm/cmd/ibsm/internal/app/session"
	"github.com/ibsm/ibsm/configs"
	"github.com/ibsm/ibsm/mad/text"
	"github.com/ibsm/ibsm/script"
)

// list lists the scripts that come with ibsm, or those in a folder.
func list(s *session.Session, args []string) error {
	var files fs.FS = configs.FS
	folder := ""
	if len(args) > 0 {
		folder = args[0]
		files = os.DirFS(folder)
		// Glob tells of no error.
		if _, err := os.ReadDir(folder); err != nil {
			return fmt.Errorf("run --list: %w", err)
		}
	}
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return err
	}
	if err := s.Out.Columns(scriptMembers(&script.Script{}, "")); err != nil {
		return err
	}
	for _, name := range names {
		if !isScript(files, name) {
			continue
		}
		shown := filepath.Join(folder, name)
		if folder == "" {
			shown = strings.TrimSuffix(name, path.Ext(name))
		}
		file, err := script.Load(name, files)
		if err != nil {
			s.Say("%s has mistakes: 'ibsm run --check' tells them", shown)
			continue
		}
		if err := s.Out.Record("Script", scriptMembers(file, shown), scriptLine(file, shown)); err != nil {
			return err
		}
	}
	return nil
}

// embedded are the names of the scripts that come with ibsm.
func embedded() ([]string, error) {
	files, err := fs.Glob(configs.FS, "*.yaml")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range files {
		if isScript(configs.FS, name) {
			names = append(names, strings.TrimSuffix(name, path.Ext(name)))
		}
	}
	return names, nil
}

// isScript tells scripts from fabrics, which are YAML too.
func isScript(files fs.FS, name string) bool {
	b, err := fs.ReadFile(files, name)
	if err != nil || len(b) > script.MaxDocument {
		return false
	}
	var doc struct {
		Version, Steps yaml.Node
	}
	return yaml.Unmarshal(b, &doc) == nil && doc.Version.Kind != 0 && doc.Steps.Kind != 0
}

// checked says that a script is in order.
func checked(s *session.Session, file *script.Script) error {
	return s.Out.Record("Script", scriptMembers(file, file.File), fmt.Appendf(nil, "%s: no mistakes\n", file.File))
}

func scriptLine(file *script.Script, shown string) []byte {
	doc, _, _ := strings.Cut(file.Doc, "\n")
	line := fmt.Sprintf("%-20s %s", text.Printable(shown), text.Printable(doc))
	return []byte(strings.TrimRight(line, " ") + "\n")
}

func scriptMembers(file *script.Script, shown string) text.Object {
	requires := []any{}
	for _, w := range file.Requires {
		requires = append(requires, w.Text)
	}
	return text.Object{
		{Name: "file", Value: shown},
		{Name: "name", Value: title(file)},
		{Name: "doc", Value: file.Doc},
		{Name: "on", Value: file.On},
		{Name: "requires", Value: requires},
	}
}
