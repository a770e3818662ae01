package script

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
	"github.com/ibsm/ibsm/mad/text"
)

// The prefixes of values that stand elsewhere, so that no secret is in a script.
const (
	secretEnv  = "env:"
	secretFile = "file:"
)

// maxSecret is how long a file with a secret may be.
const maxSecret = 4096

// SecretError is a secret that is not where the script says.
type SecretError struct {
	Where string
	Why   string
}

func (e *SecretError) Error() string { return fmt.Sprintf("secret %s: %s", e.Where, e.Why) }

// masker knows the secrets of a run and blanks them wherever they would show.
// Any number of goroutines may use it.
type masker struct {
	mu      sync.RWMutex
	secrets []string        // as they may be written
	allowed map[string]bool // the texts with env: and file: that stand in the script
}

// masked stands for a secret in a text.
const masked = "<not displayed>"

// allow notes where the script itself has its secrets from. A text of an answer must not
// have ibsm read a file and send what is in there.
func (m *masker) allow(v *Value) {
	if v == nil {
		return
	}
	if len(v.Parts) == 0 {
		m.allowText(v.Text)
	}
	for _, item := range v.Items {
		m.allow(item)
	}
	for i := range v.Entries {
		m.allow(v.Entries[i].Value)
	}
}

// allowIn is allow for the values that a step gives to variables.
func (m *masker) allowIn(b Body) {
	var entries []Entry
	switch b := b.(type) {
	case *SetVar:
		entries = b.Vars
	case *Include:
		entries = b.With
	case *ForEach:
		m.allow(b.In.List)
	case *Parallel:
		m.allow(b.In.List)
	}
	for i := range entries {
		m.allow(entries[i].Value)
	}
}

// allowGiven is allow for the value of a variable that who runs the script gave.
func (m *masker) allowGiven(value any) {
	switch value := value.(type) {
	case string:
		m.allowText(value)
	case []any:
		for _, item := range value {
			m.allowGiven(item)
		}
	}
}

func (m *masker) allowText(s string) {
	if !namesSecret(s) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.allowed == nil {
		m.allowed = make(map[string]bool)
	}
	m.allowed[s] = true
}

func namesSecret(s string) bool {
	return strings.HasPrefix(s, secretEnv) || strings.HasPrefix(s, secretFile)
}

// keys puts secrets in place of the texts that stand for them, in a value for the field
// called name. In fields that are no keys, which reports show, these are texts as others
// are.
func (m *masker) keys(of *layout.Struct, b []byte, name string, value any) (any, error) {
	var err error
	switch v := value.(type) {
	case string:
		if !namesSecret(v) {
			return v, nil
		}
		if f, err := fieldOf(of, b, name); err != nil || !f.Key {
			return v, nil // setField tells of the error
		}
		m.mu.RLock()
		allowed := m.allowed[v]
		m.mu.RUnlock()
		if !allowed {
			return nil, &SecretError{cutText(v), "the script does not have this text: write it there, as the value of the key or of a variable"}
		}
		return m.reveal(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, member := range v {
			if out[key], err = m.keys(of, b, name+"."+key, member); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return value, nil
}

// reveal gives the value for which a text stands that begins with env: or file:, and
// remembers it. Other texts are what they are.
func (m *masker) reveal(s string) (string, error) {
	secret := ""
	if name, ok := strings.CutPrefix(s, secretEnv); ok {
		if secret, ok = os.LookupEnv(name); !ok {
			return "", &SecretError{s, "the environment has no such variable"}
		}
	} else if path, ok := strings.CutPrefix(s, secretFile); ok {
		b, err := readSecret(path)
		if err != nil {
			return "", &SecretError{s, err.Error()}
		}
		secret = string(b)
	} else {
		return s, nil
	}
	if secret = strings.TrimSpace(secret); secret == "" {
		return "", &SecretError{s, "it is empty"}
	}
	m.remember(secret)
	return secret, nil
}

func readSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, maxSecret+1)
	n, err := f.Read(b)
	if n > maxSecret {
		return nil, fmt.Errorf("it has more than %d bytes", maxSecret)
	}
	if n == 0 && err != nil {
		return nil, err
	}
	return b[:n], nil
}

// remember adds a secret in each form in which a report may have it. A number of
// one digit is no secret, and would be everywhere.
func (m *masker) remember(secret string) {
	forms := []string{secret}
	if n, ok := textNumber(secret); ok {
		forms = append(forms, strconv.FormatUint(n, 10), fmt.Sprintf("%x", n), fmt.Sprintf("0x%x", n), fmt.Sprintf("0x%016x", n), fmt.Sprintf("%016x", n))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, form := range forms {
		if len(form) < 2 {
			continue
		}
		known := false
		for _, s := range m.secrets {
			known = known || s == form
		}
		if !known {
			m.secrets = append(m.secrets, form)
		}
	}
}

// text blanks the secrets in a text.
func (m *masker) text(s string) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, secret := range m.secrets {
		s = strings.ReplaceAll(s, secret, masked)
	}
	return s
}

// blankKeys gives a copy of a MAD, headers once and then data, without what the
// field table says is a key: in its headers, in its attribute and in each record.
func blankKeys(b []byte) []byte {
	out := append([]byte(nil), b...)
	parts, err := text.Split(out)
	if err != nil {
		return out // too short to have a key
	}
	for _, p := range parts {
		if p.Struct != nil {
			blankFields(p.Struct, p.Data)
		}
	}
	if len(out) >= mad.OffSAData && mad.Class(out[mad.OffClass]) == mad.ClassSubnAdm {
		// A table that a record does not begin with is cut by no Split.
		binary.BigEndian.PutUint64(out[mad.OffRMPPData:], 0)
	}
	return out
}

// blankFields zeroes the keys of a structure; the parts of Split alias the MAD.
func blankFields(s *layout.Struct, b []byte) {
	for i := range s.Fields {
		f := &s.Fields[i]
		switch {
		case f.Key:
			clear(f.Bytes(b))
		case f.Kind == layout.KindStruct && f.Count == 0:
			blankFields(f.Of, f.Bytes(b))
		}
	}
}
