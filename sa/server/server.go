// Package server is a subnet administrator (SA) over any port: it answers
// queries about a [topo.Subnet] (IBA 15). It knows ClassPortInfo, paths, links and
// every record that holds an attribute of subnet management, by Get and GetTable,
// with every component; the attributes are what the agents of the nodes answer
// (package sma). Ports join and make multicast groups and register services by Set,
// and end both by Delete; the server keeps them to itself, and the subnet's switches
// learn nothing of a group. From the start there is the group of IPoIB's broadcasts.
// Subscriptions cannot be made: other Sets and Deletes get a status.
//
// The subnet is as the bring-up has left it, whatever is set in its ports later.
//
// Where the IBA leaves a choice it does what OpenSM does; where OpenSM stays
// silent, as it does to an attribute or a method that it does not know, the
// server sends the status that the IBA asks for.
package server

import (
	"sync"

	"github.com/ibsm/ibsm/agents"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/topo"
)

// ClassVersion is the class version of subnet administration (IBA 15.2.1.1).
const ClassVersion = 2

// Config has the choices of a Server. The zero value is ready to use.
type Config struct {
	// SMKey is what a request's SM_Key must be, if that is not 0; requests with
	// another one are dropped (IBA C15-0.1.5), and only requests with it get
	// P_KeyTableRecords. 0: DefaultSMKey.
	SMKey uint64
	// MaxRecords is the largest table that is sent, a larger one is refused with
	// ERR_NO_RESOURCES, as are more services. 0: 1<<20, which are 64 MiB of paths.
	MaxRecords int
	// RMPP says who segments long answers. RMPPNone: the port (RMPPKernel).
	RMPP port.RMPPMode
}

// DefaultSMKey is the SM_Key of an SM that was not told another one: OpenSM's.
const DefaultSMKey = 1

const defaultMaxRecords = 1 << 20

// Server answers the SA requests that reach a port until it is closed.
type Server struct {
	sub      *topo.Subnet
	cfg      Config
	conn     *agents.Conn
	groups   *groups
	services services

	deviating  sync.Mutex
	deviations []bool // that are on, by their place in the table; nil: none ever was
}

// New starts to answer on dev, out of sub. The subnet is brought up and does not
// change while the server runs. The caller closes dev after the server.
func New(dev port.Device, sub *topo.Subnet, cfg Config) (*Server, error) {
	s := newServer(sub, cfg)
	conn, err := agents.Open(dev, agents.Config{})
	if err != nil {
		return nil, err
	}
	s.conn = conn
	_, err = conn.Register(agents.Registration{
		Registration: port.Registration{
			QPN: mad.QPGSI, Class: mad.ClassSubnAdm, Version: ClassVersion,
			// All request methods of the class, so that those that are not
			// implemented get a status instead of silence.
			Methods: port.Methods(mad.MethodGet, mad.MethodSet, mad.MethodGetTable,
				mad.MethodGetTraceTable, mad.MethodGetMulti, mad.MethodDelete),
			RMPP: s.cfg.RMPP,
		},
		Serve: s.serve,
	})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

func newServer(sub *topo.Subnet, cfg Config) *Server {
	prepare()
	if cfg.SMKey == 0 {
		cfg.SMKey = DefaultSMKey
	}
	if cfg.MaxRecords == 0 {
		cfg.MaxRecords = defaultMaxRecords
	}
	if cfg.RMPP == port.RMPPNone {
		cfg.RMPP = port.RMPPKernel
	}
	return &Server{sub: sub, cfg: cfg, groups: newGroups(sub)}
}

// Close stops answering.
func (s *Server) Close() error { return s.conn.Close() }

func (s *Server) serve(in *agents.Incoming) {
	if resp := s.deviate(s.lidOf(&in.Addr), in.Data); resp != nil {
		// A reply that cannot be sent is a lost one: the requester asks again.
		_ = in.Reply(resp)
	}
}

// lidOf is the LID by which the subnet knows who asks. On Ethernet there are
// none: there it is the LID of who has the GID, and a port that is none of the
// subnet's sees what the SM's port does.
func (s *Server) lidOf(from *mad.AddressVector) mad.LID {
	if from.LID != 0 || !from.HasGRH {
		return from.LID
	}
	if p, ok := s.sub.PortByGID(from.GRH.GID); ok {
		return p.LID
	}
	return s.sub.SM.LID
}
