package layout

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// bitByBit is the independent oracle.
func bitByBit(b []byte, off, n int) (v uint64) {
	for i := off; i < off+n; i++ {
		v = v<<1 | uint64(b[i/8]>>(7-i%8)&1)
	}
	return v
}

// Every offset and length, those included that touch nine bytes.
func TestUintEverywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var b, before [12]byte
	for off := range 32 {
		for n := 1; n <= 64; n++ {
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			before = b
			if got, want := Uint(b[:], off, n), bitByBit(b[:], off, n); got != want {
				t.Fatalf("%d bits at %d of %x: %#x, want %#x", n, off, b, got, want)
			}
			v := rng.Uint64()
			SetUint(b[:], off, n, v)
			for i := range 8 * len(b) {
				want := bitByBit(before[:], i, 1)
				if i >= off && i < off+n {
					want = v >> (off + n - 1 - i) & 1
				}
				if bitByBit(b[:], i, 1) != want {
					t.Fatalf("%d bits at %d: bit %d is wrong after writing %#x over %x: %x", n, off, i, v, before, b)
				}
			}
		}
	}
}

// A number at the very end of its bytes is read without touching more.
func TestUintAtEnd(t *testing.T) {
	b := []byte{0x12, 0x34, 0x56}
	if got := Uint(b, 4, 20); got != 0x23456 {
		t.Errorf("got %#x", got)
	}
}

func TestSetUintRange(t *testing.T) {
	b := make([]byte, PathRecord.Size)
	f, err := PathRecord.Find("NumbPath")
	if err != nil {
		t.Fatal(err)
	}
	var bad *RangeError
	if err := f.SetUint(b, 128); !errors.As(err, &bad) || bad.Bits != 7 || bad.Value != 128 {
		t.Errorf("error %v", err)
	}
	if err := f.SetUint(b, 127); err != nil || f.Uint(b) != 127 || b[49] != 0x7f {
		t.Errorf("%v, %x", err, b)
	}
}
