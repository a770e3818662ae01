package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"
)

// koFile makes the smallest ELF file with a section .modinfo.
func koFile(modinfo string) []byte {
	const names = "\x00.modinfo\x00.shstrtab\x00"
	const headerSize = 64
	at := func(off uint64) uint64 { return headerSize + off }
	sections := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: at(0), Size: uint64(len(modinfo)), Addralign: 1},
		{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: at(uint64(len(modinfo))), Size: uint64(len(names)), Addralign: 1},
	}
	header := elf.Header64{
		Ident:     [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:      uint16(elf.ET_REL),
		Machine:   uint16(elf.EM_X86_64),
		Version:   uint32(elf.EV_CURRENT),
		Shoff:     at(uint64(len(modinfo) + len(names))),
		Ehsize:    headerSize,
		Shentsize: 64,
		Shnum:     uint16(len(sections)),
		Shstrndx:  2,
	}
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, header)
	b.WriteString(modinfo + names)
	binary.Write(&b, binary.LittleEndian, sections)
	return b.Bytes()
}

// needs is the .modinfo of a module that depends on others, among other entries.
func needs(depends string) []byte {
	return koFile("license=Dual BSD/GPL\x00depends=" + depends + "\x00vermagic=6.1.0 SMP mod_unload\x00")
}

func TestLoadOrder(t *testing.T) {
	for _, tt := range []struct {
		what    string
		modules map[string]string // name to dependencies
		wanted  []string
		want    string // names, or a part of the error
	}{
		{"in the order wanted", map[string]string{"a": "", "b": ""}, []string{"b", "a"}, "b a"},
		{"dependencies first, once", map[string]string{"rxe": "core,tunnel", "umad": "core", "core": "", "tunnel": "udp", "udp": ""}, []string{"rxe", "umad"}, "core udp tunnel rxe umad"},
		{"one is built in", map[string]string{"net": "core", "bus": "built in", "core": ""}, []string{"bus", "net"}, "core net"},
		{"dashes", map[string]string{"rdma_rxe": "ib-core", "ib_core": ""}, []string{"rdma-rxe"}, "ib_core rdma_rxe"},
		{"missing", map[string]string{"a": "b"}, []string{"a"}, "no module b"},
		{"circle", map[string]string{"a": "b", "b": "a"}, []string{"a"}, "depend on each other: a, b, a"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			order, err := loadOrder(tt.wanted, func(name string) ([]byte, error) {
				depends, ok := tt.modules[name]
				if !ok {
					return nil, fmt.Errorf("no module %s", name)
				}
				if depends == "built in" {
					return nil, nil
				}
				return needs(depends), nil
			})
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want %s", err, tt.want)
				}
				return
			}
			var names []string
			for _, m := range order {
				names = append(names, m.name)
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("order %s, want %s", got, tt.want)
			}
		})
	}
}

func TestDependenciesOfBadFiles(t *testing.T) {
	for what, content := range map[string][]byte{
		"no ELF":    []byte("not a module"),
		"cut short": needs("core")[:70],
	} {
		if names, err := dependencies(content); err == nil {
			t.Errorf("%s: %v, want an error", what, names)
		}
	}
}

// A package's tree, with plain and with compressed modules, becomes a kernel in
// the cache; until then there is none.
func TestKeepAndFind(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	dest, err := cacheDir("6.1")
	if err != nil {
		t.Fatal(err)
	}
	isMissing := func(why string) {
		t.Helper()
		if _, err := cached("6.1"); err == nil || !strings.Contains(err.Error(), "make deps") {
			t.Errorf("%s: error %v, want one that names make deps", why, err)
		}
	}
	isMissing("nothing is there")

	tree := t.TempDir()
	put := func(name string, content []byte) {
		t.Helper()
		file := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("boot/vmlinuz-6.1.0", []byte("image"))
	put("lib/modules/6.1.0/modules.builtin", []byte("kernel/fs/ext4.ko\nkernel/drivers/"+wanted[0]+".ko\n"))
	for _, name := range wanted[1:] {
		put("lib/modules/6.1.0/kernel/"+name+".ko", needs("ib_core"))
	}
	core := needs("")
	put("lib/modules/6.1.0/kernel/ib_core.ko.xz", compressed(t, core))
	put("lib/modules/6.1.0/kernel/other.ko", needs(""))
	if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := keep(tree, dest); err != nil {
		t.Fatal(err)
	}

	k, err := cached("6.1")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, m := range k.modules {
		number, name, _ := strings.Cut(strings.TrimSuffix(filepath.Base(m), ".ko"), "-")
		if number != fmt.Sprintf("%02d", i) {
			t.Errorf("module %d is %s", i, m)
		}
		names = append(names, name)
	}
	if want := append([]string{"ib_core"}, wanted[1:]...); !slices.Equal(names, want) {
		t.Errorf("modules %v, want %v", names, want)
	}
	if got, err := os.ReadFile(k.modules[0]); err != nil || !bytes.Equal(got, core) {
		t.Errorf("ib_core is not what was compressed (%v)", err)
	}
	if got, err := os.ReadFile(k.vmlinuz); err != nil || string(got) != "image" {
		t.Errorf("vmlinuz: %q, %v", got, err)
	}

	// A cache from before a module was wanted does not do.
	all := wanted
	defer func() { wanted = all }()
	wanted = append(slices.Clip(all), "mlx5_ib")
	isMissing("a module is not there")
}

func TestKeepRefuses(t *testing.T) {
	for what, file := range map[string]string{
		"no vmlinuz": "lib/modules/6.1.0/x.ko",
		"no module":  "boot/vmlinuz-6.1.0",
	} {
		tree := t.TempDir()
		name := filepath.Join(tree, file)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := keep(tree, filepath.Join(t.TempDir(), "kept")); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want %q", err, what)
		}
	}
	if err := keep(filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "kept")); !os.IsNotExist(err) {
		t.Errorf("no tree: %v, want %v", err, fs.ErrNotExist)
	}
}

func compressed(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := xz.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
