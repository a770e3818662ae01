package script

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// ParseVar reads a variable for Options.Vars from NAME=VALUE, as a command line has it.
// VALUE is written as in a script: a scalar, or a list of such as [h1, h2].
func ParseVar(s string) (name string, value any, err error) {
	name, text, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return "", nil, fmt.Errorf("%q: it is written NAME=VALUE", s)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return "", nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(doc.Content) == 0 {
		return name, "", nil
	}
	value, err = plainYAML(doc.Content[0])
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", name, err)
	}
	return name, value, nil
}

func plainYAML(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return constant(&node{tag: n.ShortTag(), text: n.Value}), nil
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			var err error
			if list[i], err = plainYAML(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("a value is text, a number, true, false, or a list of these")
}
