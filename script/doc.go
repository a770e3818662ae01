// Package script reads, checks and runs sequences of MADs written in YAML.
package script


