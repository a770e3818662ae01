// Command gen writes what is made of the tables of package script: the JSON Schema
// in configs, and the reference in docs/scripts.md. It runs in script/, by go
// generate.
package main

import (
	"fmt"
	"os"

	"github.com/ibsm/ibsm/script"
)

func main() {
	if err := write("../configs/script.schema.json", "../docs/scripts.md"); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func write(schema, page string) error {
	if err := os.WriteFile(schema, script.Schema(), 0o644); err != nil {
		return err
	}
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text, err := script.InsertReference(string(old))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(text), 0o644)
}
