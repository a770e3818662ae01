package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"slices"
	"strings"
)

type module struct {
	name    string
	content []byte
}

// loadOrder lists modules so that each comes after those it depends on. read
// gives the ELF file of a module, and nothing for one that the kernel has built in.
func loadOrder(names []string, read func(name string) ([]byte, error)) (order []module, err error) {
	var add func(name string, above []string) error
	add = func(name string, above []string) error {
		if slices.ContainsFunc(order, func(m module) bool { return m.name == name }) {
			return nil
		}
		if slices.Contains(above, name) {
			return fmt.Errorf("modules depend on each other: %s", strings.Join(append(above, name), ", "))
		}
		content, err := read(name)
		if err != nil {
			return err
		}
		if content == nil {
			return nil
		}
		depends, err := dependencies(content)
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		for _, d := range depends {
			if err := add(d, append(above, name)); err != nil {
				return err
			}
		}
		order = append(order, module{name, content})
		return nil
	}
	for _, name := range names {
		if err := add(moduleName(name), nil); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// dependencies reads the list in a module's .modinfo section: entries of the form
// key=value, each ended by a zero byte (include/linux/moduleparam.h).
func dependencies(content []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("no section .modinfo")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(string(info), "\x00") {
		if list, ok := strings.CutPrefix(entry, "depends="); ok && list != "" {
			names := strings.Split(list, ",")
			for i := range names {
				names[i] = moduleName(names[i])
			}
			return names, nil
		}
	}
	return nil, nil
}

// moduleName spells a module's name as the kernel does: file names may have dashes.
func moduleName(name string) string { return strings.ReplaceAll(name, "-", "_") }
