// Package configs holds the example fabric and the scripts that come with ibsm.
package configs

import "embed"

// FS holds the files of this folder by name: demo.yaml is the fabric that
// topo.Generate("demo") gives, all others are scripts.
//
//go:embed *.yaml
var FS embed.FS
