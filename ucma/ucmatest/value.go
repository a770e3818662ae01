package ucmatest

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/ucma"
)

// assign sets a field of a structure, or of one inside it, by its name.
func assign(s reflect.Value, name, text string) error {
	v := fieldOf(s, name)
	if !v.IsValid() {
		return fmt.Errorf("%v has no field %s", s.Type(), name)
	}
	if err := set(v, text); err != nil {
		return fmt.Errorf("%s=%s: %w", name, text, err)
	}
	return nil
}

// fieldOf looks a field up: in the structure, then in those inside it.
func fieldOf(s reflect.Value, name string) reflect.Value {
	if v := s.FieldByName(name); v.IsValid() {
		return v
	}
	for i := range s.NumField() {
		f := s.Field(i)
		inner := f.Type()
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if _, has := fieldByName(inner, name); !has {
			continue
		}
		if f.Kind() == reflect.Pointer {
			if f.IsNil() {
				f.Set(reflect.New(inner))
			}
			f = f.Elem()
		}
		return f.FieldByName(name)
	}
	return reflect.Value{}
}

func fieldByName(t reflect.Type, name string) (reflect.StructField, bool) {
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[ucma.Sockaddr]() {
		return reflect.StructField{}, false
	}
	return t.FieldByName(name)
}

// set gives a value by its text.
func set(v reflect.Value, text string) error {
	switch v.Interface().(type) {
	case ucma.Sockaddr:
		a, err := parseAddr(text)
		v.Set(reflect.ValueOf(a))
		return err
	case time.Duration:
		d, err := time.ParseDuration(text)
		v.Set(reflect.ValueOf(d))
		return err
	case mad.GID:
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return err
		}
		v.Set(reflect.ValueOf(mad.GID(ip.As16())))
		return nil
	case []byte:
		b, err := parseBytes(text)
		v.SetBytes(b)
		return err
	}
	switch v.Kind() {
	case reflect.Bool:
		on, err := strconv.ParseBool(text)
		v.SetBool(on)
		return err
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := strconv.ParseUint(text, 0, v.Type().Bits())
		if err == nil {
			v.SetUint(n)
			return nil
		}
		for n := range uint64(1 << min(v.Type().Bits(), 10)) { // by its name
			if v.SetUint(n); v.Type().PkgPath() != "" && fmt.Sprint(v.Interface()) == text {
				return nil
			}
		}
		return err
	case reflect.Int, reflect.Int32:
		n, err := strconv.ParseInt(text, 0, v.Type().Bits())
		v.SetInt(n)
		return err
	}
	return fmt.Errorf("a %v has no text", v.Type())
}

// parseBytes reads text, hex:00ff or x*92.
func parseBytes(text string) ([]byte, error) {
	if digits, ok := strings.CutPrefix(text, "hex:"); ok {
		return hex.DecodeString(digits)
	}
	if unit, times, ok := strings.Cut(text, "*"); ok {
		n, err := strconv.Atoi(times)
		return []byte(strings.Repeat(unit, max(n, 0))), err
	}
	return []byte(text), nil
}

// parseAddr reads 192.0.2.1:7471, [fd00::1]:7471, [fe80::1%2]:7471 or
// ib:GID/service/P_Key.
func parseAddr(text string) (a ucma.Sockaddr, err error) {
	rest, ok := strings.CutPrefix(text, "ib:")
	if !ok {
		if a.IP, err = netip.ParseAddrPort(text); err != nil {
			return a, err
		}
		if zone := a.IP.Addr().Zone(); zone != "" {
			n, err := strconv.ParseUint(zone, 10, 32)
			a.ScopeID = uint32(n)
			a.IP = netip.AddrPortFrom(a.IP.Addr().WithZone(""), a.IP.Port())
			return a, err
		}
		return a, nil
	}
	a.IB = &ucma.SockaddrIB{ServiceIDMask: ^uint64(0)}
	parts := strings.Split(rest, "/")
	if len(parts) != 3 {
		return a, fmt.Errorf("it is ib:GID/service/P_Key")
	}
	for i, to := range []any{&a.IB.GID, &a.IB.ServiceID, &a.IB.PKey} {
		if err := set(reflect.ValueOf(to).Elem(), parts[i]); err != nil {
			return a, err
		}
	}
	return a, nil
}

// leaf is one field of what the kernel said.
type leaf struct {
	name string
	text string
	num  string // an integer in decimal, or ""
	zero bool
}

// leaves lists the fields of a response or event. Names are joined with dots.
func leaves(name string, v reflect.Value) (all []leaf) {
	plain := func(text string) []leaf { return []leaf{{name: name, text: text, zero: v.IsZero()}} }
	inner := func(part string) string { return strings.TrimPrefix(name+"."+part, ".") }
	switch x := v.Interface().(type) {
	case ucma.Sockaddr:
		if x.IB != nil {
			return plain(fmt.Sprintf("ib:%v/%#x/%v", x.IB.GID, x.IB.ServiceID, x.IB.PKey))
		}
		return plain(x.String())
	case mad.GID:
		return plain(x.String())
	case []byte:
		return []leaf{{name: name, text: fmt.Sprintf("%s/%d", strings.TrimRight(string(x), "\x00"), len(x)), zero: len(x) == 0}}
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				all = append(all, leaves(inner(f.Name), v.Field(i))...)
			}
		}
		return all
	case reflect.Array, reflect.Slice:
		for i := range v.Len() {
			all = append(all, leaves(inner(strconv.Itoa(i)), v.Index(i))...)
		}
		return all
	}
	l := plain(fmt.Sprint(v.Interface()))
	switch {
	case v.CanUint():
		l[0].num = strconv.FormatUint(v.Uint(), 10)
	case v.CanInt():
		l[0].num = strconv.FormatInt(v.Int(), 10)
	}
	return l
}

// is tells whether a leaf has the value that a script expects.
func (l *leaf) is(text string) bool {
	if l.text == text || text == "*" {
		return true
	}
	if n, err := strconv.ParseUint(text, 0, 64); err == nil {
		return strconv.FormatUint(n, 10) == l.num
	}
	data, size, ok := strings.Cut(text, "/")
	b, err := parseBytes(data)
	return ok && err == nil && string(b)+"/"+size == l.text
}

// compare compares what the kernel said with what is expected, and fills variables in.
// It gives what is wrong.
func compare(got []leaf, want []field, vars map[string]string) (wrong []string) {
	seen := map[string]bool{}
	for _, w := range want {
		i := slices.IndexFunc(got, func(l leaf) bool { return l.name == w.name })
		if i < 0 {
			wrong = append(wrong, fmt.Sprintf("there is no %s", w.name))
			continue
		}
		seen[w.name] = true
		value := w.value
		if name, ok := strings.CutPrefix(value, "$"); ok {
			if _, known := vars[name]; !known {
				vars[name] = got[i].text
			}
			value = vars[name]
		}
		if !got[i].is(value) {
			wrong = append(wrong, fmt.Sprintf("%s=%s, want %s", w.name, got[i].text, value))
		}
	}
	for _, l := range got {
		if !l.zero && !seen[l.name] {
			wrong = append(wrong, fmt.Sprintf("%s=%s, want zero", l.name, l.text))
		}
	}
	return wrong
}

// expand puts variables into the text of an argument.
func expand(text string, vars map[string]string) (string, error) {
	var missing string
	out := variable.ReplaceAllStringFunc(text, func(m string) string {
		value, ok := vars[m[1:]]
		if !ok {
			missing = m
		}
		return value
	})
	if missing != "" {
		return "", fmt.Errorf("%s has no value yet", missing)
	}
	return out, nil
}
