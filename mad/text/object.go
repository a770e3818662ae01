package text

import (
	"bytes"
	"encoding/json"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/mad/layout"
)

// Object is a structure as names and values in the order of the table, with
// the IBA's names and without reserved bits. Values are what [Value] gives.
type Object []Member

// Member is one field of an Object.
type Member struct {
	Name  string
	Value any
}

// MarshalJSON writes a JSON object in the order of the members.
func (o Object) MarshalJSON() ([]byte, error) {
	var w bytes.Buffer
	enc := json.NewEncoder(&w)
	enc.SetEscapeHTML(false)
	w.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			w.WriteByte(',')
		}
		if err := enc.Encode(m.Name); err != nil {
			return nil, err
		}
		w.WriteByte(':')
		if err := enc.Encode(m.Value); err != nil {
			return nil, err
		}
	}
	w.WriteByte('}')
	return w.Bytes(), nil
}

// Get is the value of the member called name.
func (o Object) Get(name string) (any, bool) {
	for _, m := range o {
		if m.Name == name {
			return m.Value, true
		}
	}
	return nil, false
}

// ObjectOf gives a structure as an Object.
func ObjectOf(v mad.Structure) Object {
	s, b := wire(v)
	return object(s, b)
}

// ObjectOfBytes gives the structure in b, which is exactly its size, as an
// Object. The error is a [*mad.LengthError].
func ObjectOfBytes(s *layout.Struct, b []byte) (Object, error) {
	if err := checkLength(s, b); err != nil {
		return nil, err
	}
	return object(s, b), nil
}

func object(s *layout.Struct, b []byte) Object {
	o := make(Object, 0, len(s.Fields))
	for i := range s.Fields {
		f := &s.Fields[i]
		if f.IsReserved() {
			continue
		}
		value := Value(f, b)
		if of := s.Variant(f, b); of != nil {
			value = object(of, f.Bytes(b))
		}
		o = append(o, Member{f.Name, value})
	}
	return o
}

// wire encodes v, whose encoders do not fail.
func wire(v mad.Structure) (*layout.Struct, []byte) {
	s := v.Layout()
	b, _ := v.AppendBinary(make([]byte, 0, s.Size))
	return s, b
}

func checkLength(s *layout.Struct, b []byte) error {
	if len(b) != s.Size {
		return &mad.LengthError{Struct: s.Name, Got: len(b), Want: s.Size}
	}
	return nil
}
