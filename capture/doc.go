// Package capture records the management datagrams that pass a [port.Device] or
// a [port.Port] in a pcapng file, which Wireshark and tshark read as InfiniBand.
//
//	w, err := capture.NewWriter(file)
//	dev = capture.Device(dev, w)
//
// A Port carries MADs and their addresses, not packets. What stands around the
// MAD is made: the link type is ERF (197), each record of type 21 (InfiniBand)
// holds LRH, GRH where the address has one, BTH, DETH, the MAD, and ICRC and
// VCRC as zeros. LIDs, GIDs, service level, queue pairs and P_Key are those of
// the address and of the port's tables; virtual lane (15 for SMPs, otherwise 0),
// Q_Key and packet sequence numbers (a count of each direction) are what a port
// would use. On an Ethernet port (RoCE) the LIDs are 0, as in the address. A
// comment at each packet says so.
//
// # What is recorded
//
// Every Send that succeeded, with the time before it, and every message that
// Recv gave. Records stand in the file in the order of these times, so a request
// precedes its answer. Below a Port happens more, which it does not show:
//
//   - Transmissions after the first. The comment of a Send tells its time-out and
//     its retries.
//   - Acknowledgements and resent segments of RMPP, where the carrier drives it. A
//     message longer than one MAD is recorded as the segments it stands for,
//     with RMPP headers as the kernel makes them, all with the time of the message.
//   - The upper half of the transaction id of a request, which the carrier sets. It
//     is known from the first answer or time-out of the agent on; before that
//     the request is recorded as it was given, and its comment says so.
//
// A time-out is no packet. It is recorded as an ERF pad record, which has no
// content, with a comment that tells what timed out.
//
// Ports do not wait for the file: packets that come faster than it takes them are
// missing, see [Writer].
package capture
