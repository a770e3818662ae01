// Package rmpp is the reliable multi-packet protocol that carries messages
// longer than one MAD (IBA 13.6), as pure state machines: a [Sender] cuts a
// message into segments, a [Receiver] puts it together again and acknowledges.
//
// Neither reads a clock, starts a goroutine or does I/O. The time comes in as
// an argument, packets to transmit are pulled:
//
//	for s.Next(now, &pkt) {
//		transmit(&pkt)
//	}
//
// Do so after creating a Sender, after every Receive, and again no later than
// Deadline. The zero time as Deadline means that only a packet can move the
// machine; with Done it may be dropped.
//
// # Which packets belong here
//
// The caller matches packets to transfers (transaction id, class, remote
// address) and hands over those for which [IsActive] is true: DATA to the
// Receiver, the other types to the Sender, or to the Receiver where there is no
// Sender under way. Packets that are not active, and those of RMPP version 0,
// are single MADs and the caller's concern. The machines ignore them and never
// answer them: a peer without RMPP would take an ACK, whose R bit is clear, for
// a new request.
//
// # Messages
//
// A message is laid out as the kernel's umad does it: the headers of its class
// once ([mad.ClassHeaderLen] bytes), then all data. On the wire each segment
// repeats the headers, and PayloadLength counts from the end of the RMPP header:
// a segment of n data bytes has ClassHeaderLen - 36 + n, the first segment tells
// the sum over all segments.
//
// # Double-sided transfers
//
// When a request of several packets has a response of several packets, the
// requester turns the direction round after the ACK of its last segment, by an
// ACK of segment 0 that grants the first window of the response (IBA 13.6.3).
// SenderConfig.ResponseWindow and ReceiverConfig.FirstWindow are for the
// requester, Receiver.Granted and SenderConfig.FirstWindow for the responder.
//
// The values of the parameters are those of the Linux kernel
// (drivers/infiniband/core/mad_rmpp.c).
package rmpp

import "time"

// Parameters of the Linux kernel's implementation, used where a field of a
// configuration is zero.
const (
	DefaultWindow         = 64               // segments granted with an ACK: an eighth of the kernel's receive queue
	DefaultFirstWindow    = 1                // segments that may be sent before the first ACK
	DefaultSegmentTimeout = 2 * time.Second  // wait for an ACK
	DefaultReceiveTimeout = 40 * time.Second // for a whole message, from its first segment
	DefaultMemory         = 10 * time.Second // for which the end of a transfer is remembered
	DefaultMaxData        = 256 << 20        // bytes of data in a message; the kernel has no limit
)
