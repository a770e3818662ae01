// Package script reads, checks and runs sequences of MADs written in YAML: the
// language of docs/scripts.md.
//
// Load reads a file with what it includes, Check finds every mistake that can be
// found before the first MAD is sent, and Run runs it:
//
//	s, err := script.Load("sweep.yaml", nil)
//	err = s.Check(script.CheckEnv{})
//	outcome, err := script.Run(ctx, s, env, script.Options{})
//
// One table, in language.go, has every key, kind of step, word and function. The
// parser, the check, the JSON Schema and the reference are made from it.
package script

//go:generate go run ./internal/gen
