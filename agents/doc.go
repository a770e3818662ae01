// Package agents is the framework for programs that ask and serve over a
// port.Device: it matches answers to requests, keeps deadlines, limits what is
// in flight, calls handlers, and carries messages of any length by RMPP.
//
// # Asking
//
// A Conn is one open file on a device. An Agent on it asks one management class:
//
//	conn, err := agents.Open(dev, agents.Config{})
//	defer conn.Close()
//	agent, err := conn.Register(agents.Registration{
//		Registration: port.Registration{
//			QPN: mad.QPGSI, Class: mad.ClassSubnAdm, Version: 2, RMPP: port.RMPPUser,
//		},
//		Window: agents.WindowSA,
//	})
//	response, err := agent.Do(ctx, &agents.Request{
//		Addr: sa, Data: query, Timeout: time.Second, Retries: 3, Long: true,
//	})
//
// Request.Data is the MAD, headers included; the agent puts the transaction id
// in. Do returns the answer whatever its status is, or an *Error that says what
// was asked, of whom, at which step, and what went wrong. Many goroutines may
// call Do: each request ends exactly once.
//
// A request ends by its answer, by its own time-out, or with its context. The
// time-out of each transmission is the carrier's business, but a kernel does
// not report every failure, so that each request has a deadline of its own
// behind it (Config.Grace). Answers that come after the end of their request are
// dropped and counted (Stats.Late), and so is what answers no request of this
// Conn (Stats.Foreign): other class or attribute, or a transaction id that was
// never issued.
//
// # Serving
//
// With Serve and Methods an Agent gets requests:
//
//	conn.Register(agents.Registration{
//		Registration: port.Registration{
//			QPN: mad.QPGSI, Class: mad.ClassSubnAdm, Version: 2, RMPP: port.RMPPUser,
//			Methods: port.Methods(mad.MethodGet, mad.MethodGetTable),
//		},
//		Serve: func(in *agents.Incoming) {
//			in.Reply(answer(in.Data))
//		},
//	})
//
// Handlers run in Workers goroutines, so that a slow one does not hold up the
// others or the agent's own requests. A retransmission of a request that is
// being served is dropped (Stats.Duplicates). Requests are told apart by the
// whole transaction id, class and source.
//
// A handler that waits should watch Incoming.Context, which ends with the agent:
// Close returns after the last handler.
//
// # Messages of several MADs
//
// A message of any length is laid out as one MAD: the headers of its class once,
// then all data. Who cuts and joins follows from Registration.RMPP:
//
//   - RMPPNone: nobody. Longer messages are refused with ErrTooLong.
//   - RMPPKernel: the carrier. Long requests get a time-out that covers the
//     transfer of the answer (Registration.Transfer), because the carrier tells
//     nothing until it is complete, and nothing at all if the peer aborts it.
//   - RMPPUser: this package, by package rmpp. Only the wait for the first
//     segment is the carrier's; an answer that stalls is noticed, and one that is
//     slow is not cut off (RMPPConfig); the peer's STOP or ABORT is an
//     *rmpp.AbortError; Stream hands over data as it arrives. The agent of a
//     server must own the methods of the ACKs to its answers: those of the
//     answers without R bit. Register adds them.
//
// Answers that are not RMPP, and those of RMPP version 0 as they come from
// OpenSM where nothing below it does RMPP, are single MADs in all modes and are
// never acknowledged.
//
// # How it works
//
// One lock guards the state of all exchanges. Whoever brings an event handles it
// under that lock: the one goroutine, which reads the Port; the one timer, which is
// set to the earliest deadline; a program. Nobody waits for anything meanwhile:
// results and payload go into buffers. So an answer takes no more goroutines than
// the one that waits for it.
package agents
