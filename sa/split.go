package sa

import (
	"bytes"
	"fmt"

	"github.com/ibsm/ibsm/mad"
)

// splitError says why bytes cannot be taken apart into records.
type splitError string

func (e splitError) Error() string { return string(e) }

// splitter cuts the data of a table into records of at least size bytes and
// hands on each; it ends early with the error of emit. Records lie distance bytes
// apart, which is AttributeOffset × 8 (IBA 15.2.1.1), whatever the size of the
// structure that we know: an SA with a longer structure sends longer records,
// and padding follows a structure that is no multiple of 8. The last record may
// stop short of its padding.
//
// Data comes in pieces of any length; a record is handed on as soon as it is
// there, and is valid during the call of emit.
type splitter struct {
	size, distance int
	// single says that the data is that of one MAD without RMPP, which has no
	// length of its own: what follows the records is zero, and no record is.
	single bool
	// one says that there is one record, whatever follows it: the answer to a Get.
	one bool
	// cut says that the data is the beginning of more that does not come: the last
	// record may be a piece, which is left out.
	cut  bool
	emit func(record []byte) error

	rest  []byte // not handed on yet
	total int    // bytes so far
	more  bool   // something that is not zero follows rest
}

// feed takes the next piece of data.
func (s *splitter) feed(data []byte) error {
	s.total += len(data)
	if s.single || s.one || s.distance < s.size {
		return s.keep(data)
	}
	for len(data) > 0 {
		if len(s.rest) == 0 && len(data) >= s.distance {
			if err := s.emit(data[:s.distance]); err != nil {
				return err
			}
			data = data[s.distance:]
			continue
		}
		n := min(s.distance-len(s.rest), len(data))
		s.rest = append(s.rest, data[:n]...)
		data = data[n:]
		if len(s.rest) == s.distance {
			if err := s.emit(s.rest); err != nil {
				return err
			}
			s.rest = s.rest[:0]
		}
	}
	return nil
}

// keep is feed where the end has to be seen first. One record, or one MAD, is all
// that there can be then.
func (s *splitter) keep(data []byte) error {
	n := min(max(mad.SADataSize, padded(s.size))-len(s.rest), len(data))
	s.rest = append(s.rest, data[:n]...)
	if !s.one && !isZero(data[n:]) {
		s.more = true
		return s.end()
	}
	return nil
}

// end takes what is left at the end of the data.
func (s *splitter) end() error {
	data, distance := s.rest, s.distance
	switch {
	case s.one && len(data) < s.size:
		return splitError(fmt.Sprintf("%d bytes, but one record has %d", len(data), s.size))
	case s.one:
		return s.emit(data[:s.size])
	case s.cut && distance >= s.size:
		if len(data) < s.size {
			return nil
		}
		return s.emit(data)
	case isZero(data) && !s.more && (s.single || s.total < max(s.size, distance)):
		return nil // no record, only padding
	case distance == 0:
		// Without a distance there can be one record, and padding up to 8; RMPP tells
		// the length, so that zeros are no padding there.
		distance = padded(s.size)
		n := min(distance, len(data))
		if s.more || !isZero(data[n:]) || !s.single && s.total > distance {
			return splitError(fmt.Sprintf("more than one record of %d bytes, but no distance between them", s.size))
		}
		data = data[:n]
	case distance < s.size:
		return splitError(fmt.Sprintf("records %d bytes apart, but one has %d bytes", distance, s.size))
	}
	for len(data) >= s.size {
		record := data[:min(distance, len(data))]
		data = data[len(record):]
		if s.single && isZero(record) {
			continue
		}
		if len(record) < distance && !isZero(record[s.size:]) {
			return splitError(fmt.Sprintf("%d bytes that are no padding follow the last record of %d bytes", len(record)-s.size, s.size))
		}
		if err := s.emit(record); err != nil {
			return err
		}
	}
	if !isZero(data) {
		return splitError(fmt.Sprintf("%d bytes are left after the last record of %d bytes", len(data), s.size))
	}
	return nil
}

// padded rounds the size of a record up to what AttributeOffset can say.
func padded(size int) int { return (size + 7) / 8 * 8 }

var zeros [512]byte

func isZero(b []byte) bool {
	for ; len(b) > len(zeros); b = b[len(zeros):] {
		if !bytes.Equal(b[:len(zeros)], zeros[:]) {
			return false
		}
	}
	return bytes.Equal(b, zeros[:len(b)])
}
