package sa

import (
	"bytes"
	"fmt"
)

// splitError says why bytes cannot be taken apart into records.
type splitError string

func (e splitError) Error() string { return string(e) }

// split cuts the data of a table into records of at least size bytes and hands
// on each; it ends early with the error of emit. Records lie distance bytes
// apart, which is AttributeOffset × 8 (IBA 15.2.1.1), whatever the size of the
// structure that we know: an SA with a longer structure sends longer records,
// and padding follows a structure that is no multiple of 8. The last record may
// stop short of its padding.
//
// single says that the data is that of one MAD without RMPP, which has no length
// of its own: what follows the records is zero, and no record is.
func split(data []byte, size, distance int, single bool, emit func(record []byte) error) error {
	switch {
	case isZero(data) && len(data) < max(size, distance), single && isZero(data):
		return nil // no record, only padding
	case distance == 0:
		// Without a distance there can be one record, and padding up to 8.
		distance = (size + 7) / 8 * 8
		if !isZero(data[min(distance, len(data)):]) {
			return splitError(fmt.Sprintf("more than one record of %d bytes, but no distance between them", size))
		}
		data = data[:min(distance, len(data))]
	case distance < size:
		return splitError(fmt.Sprintf("records %d bytes apart, but one has %d bytes", distance, size))
	}
	for len(data) >= size {
		record := data[:min(distance, len(data))]
		data = data[len(record):]
		if single && isZero(record) {
			continue
		}
		if len(record) < distance && !isZero(record[size:]) {
			return splitError(fmt.Sprintf("%d bytes that are no padding follow the last record of %d bytes", len(record)-size, size))
		}
		if err := emit(record); err != nil {
			return err
		}
	}
	if !isZero(data) {
		return splitError(fmt.Sprintf("%d bytes are left after the last record of %d bytes", len(data), size))
	}
	return nil
}

var zeros [512]byte

func isZero(b []byte) bool {
	for ; len(b) > len(zeros); b = b[len(zeros):] {
		if !bytes.Equal(b[:len(zeros)], zeros[:]) {
			return false
		}
	}
	return bytes.Equal(b, zeros[:len(b)])
}
