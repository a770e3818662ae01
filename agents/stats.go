package agents

import "sync/atomic"

// Stats counts what a Conn has done since it was opened.
type Stats struct {
	Sent     uint64 // messages given to the Port: requests, replies and RMPP packets
	Answered uint64 // requests that ended with an answer
	TimedOut uint64 // requests that ended without one in time
	Resent   uint64 // requests sent again with a new transaction id; the carrier's own retries do not show

	Served     uint64 // requests handed to a handler
	Duplicates uint64 // requests dropped because they were being served already
	Overflows  uint64 // requests dropped because of Registration.Queue or MaxMessage
	Late       uint64 // answers and RMPP packets that came after their exchange had ended
	Foreign    uint64 // messages that belong to no exchange of this Conn, or are malformed

	RMPP RMPPStats
}

// RMPPStats counts the transfers of agents in mode RMPPUser. Of those in mode
// RMPPKernel nothing shows but a reply that was not acknowledged, in Failed.
type RMPPStats struct {
	Packets  uint64 // received: segments, ACKs, STOPs and ABORTs
	Sent     uint64 // messages that were acknowledged to the end
	Received uint64 // messages that arrived whole
	Failed   uint64 // transfers in either direction that ended early
}

// counters is what Stats is a snapshot of.
type counters struct {
	sent, answered, timedOut, resent                 atomic.Uint64
	served, duplicates, overflows, late, foreign     atomic.Uint64
	packets, transfersOut, transfersIn, transfersBad atomic.Uint64
}

// Stats gives the counters as they are now.
func (c *Conn) Stats() Stats {
	n := &c.counters
	return Stats{
		Sent:     n.sent.Load(),
		Answered: n.answered.Load(),
		TimedOut: n.timedOut.Load(),
		Resent:   n.resent.Load(),

		Served:     n.served.Load(),
		Duplicates: n.duplicates.Load(),
		Overflows:  n.overflows.Load(),
		Late:       n.late.Load(),
		Foreign:    n.foreign.Load(),

		RMPP: RMPPStats{
			Packets:  n.packets.Load(),
			Sent:     n.transfersOut.Load(),
			Received: n.transfersIn.Load(),
			Failed:   n.transfersBad.Load(),
		},
	}
}
