package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/ibsm/ibsm/capture"
	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/port"
	"github.com/ibsm/ibsm/softcma"
	"github.com/ibsm/ibsm/topo"
	"github.com/ibsm/ibsm/ucma"
)

// EchoPort is the port number at which each host of a simulated fabric accepts
// connections, in the port spaces TCP and UDP. Of the private data that it gets it
// sends back as much as fits.
const EchoPort = 7471

// simCM is the CM of a simulated host, with those of the hosts that it asks for.
type simCM struct {
	simulation *simulation
	own        *softcma.Host
	dialect    *ucma.Dialect
	serving    context.Context // of all echoes
	stop       context.CancelFunc
	echoes     sync.WaitGroup

	mu     sync.Mutex
	closed bool // no host starts any more, and no listener's echo
	hosts  map[*topo.Port]*softcma.Host
}

func openSimCM(ctx context.Context, d *simDevice, cfg CMConfig) (CM, error) {
	s := &simCM{simulation: d.simulation, dialect: cfg.Dialect, hosts: make(map[*topo.Port]*softcma.Host)}
	if s.dialect == nil {
		s.dialect = ucma.Linux
	}
	s.serving, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	if s.own, err = s.start(d.at, cfg.Trace); err == nil && !cfg.NoEcho {
		err = s.listen(d.at, s.own)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start starts the CM of a port's host.
func (s *simCM) start(p *topo.Port, trace *capture.Writer) (*softcma.Host, error) {
	host, err := s.host(p, trace)
	if err != nil {
		return nil, fmt.Errorf("RDMA CM of %v: %w", p, err)
	}
	s.hosts[p] = host
	return host, nil
}

// listen starts the echoes of a host.
func (s *simCM) listen(p *topo.Port, host *softcma.Host) error {
	open := ucma.Opener(func() (ucma.Device, error) { return host.Open(ucma.Linux) })
	// A listener at any IP address takes no request for a GID, and one at any GID no
	// datagram's (cma.c, cma_match_net_dev and cma_validate_port).
	gid, key := p.GID(s.simulation.sub.GIDPrefix), mad.DefaultPKey
	if len(p.PKeys) > 0 {
		key = p.PKeys[0]
	}
	for _, ps := range []ucma.PortSpace{ucma.PortSpaceTCP, ucma.PortSpaceUDP} {
		for _, at := range []ucma.Sockaddr{
			ucma.IBAddr(gid, key, ps, EchoPort),
			{IP: netip.AddrPortFrom(netip.IPv4Unspecified(), EchoPort)},
			{IP: netip.AddrPortFrom(netip.IPv6Unspecified(), EchoPort)},
		} {
			l, err := open.Listen(s.serving, at, ucma.ListenConfig{PortSpace: ps, AFOnly: true})
			if err != nil {
				return fmt.Errorf("RDMA CM of %v: %w", p, err)
			}
			s.echoes.Go(func() { s.echo(l) })
		}
	}
	return nil
}

func (s *simCM) host(p *topo.Port, trace *capture.Writer) (*softcma.Host, error) {
	kernel, err := s.simulation.fabric.Device(p.Node, p.Num)
	if err != nil {
		return nil, err
	}
	out, err := kernel.OpenKernel()
	if err != nil {
		return nil, err
	}
	dev := port.Device(kernel)
	if trace != nil {
		out, dev = capture.Port(out, dev.Info, trace), capture.Device(dev, trace)
	}
	sub := s.simulation.sub
	cfg := softcma.Config{Neighbour: func(ip netip.Addr) (softcma.Neighbour, bool) {
		to, ok := sub.PortByIP(ip)
		if !ok {
			return softcma.Neighbour{}, false
		}
		return softcma.Neighbour{GID: to.GID(sub.GIDPrefix), LID: to.LID}, true
	}}
	if p.IP.IsValid() {
		cfg.Addrs = []netip.Prefix{netip.PrefixFrom(p.IP, sub.IPoIB().Bits())}
	}
	host, err := softcma.New(out, dev, cfg)
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return host, nil
}

// echo accepts connections until its listener or the CM ends.
func (s *simCM) echo(l *ucma.Listener) {
	defer l.Close()
	for {
		r, err := l.Next(s.serving)
		if err != nil {
			return
		}
		s.echoes.Go(func() {
			data := r.PrivateData
			limit := ucma.Linux.PrivateDataLimit(ucma.OpAccept, r.ID().QPType(), r.Local.Family())
			data = data[:min(len(data), limit)]
			// What fails here the other side hears of.
			c, err := r.Accept(s.serving, ucma.AcceptConfig{PrivateData: data})
			if err != nil {
				return
			}
			c.Wait(s.serving)
			c.Close()
		})
	}
}

// Open opens the own host's CM, through which the hosts are started that it asks
// for.
func (s *simCM) Open() (ucma.Device, error) {
	dev, err := s.own.Open(s.dialect)
	if err != nil {
		return nil, err
	}
	return &simCMFile{dev, s}, nil
}

// Close ends the echoes, then the hosts: first the own, which tells its peers.
func (s *simCM) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.echoes.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if s.own != nil {
		errs = append(errs, s.own.Close())
	}
	for _, host := range s.hosts {
		if host != s.own {
			errs = append(errs, host.Close())
		}
	}
	return errors.Join(errs...)
}

// simCMFile is a file of the own host's CM.
type simCMFile struct {
	ucma.Device
	cm *simCM
}

// Exec starts the CM of a host before its address is resolved: a fabric may have
// thousands that nobody asks for.
func (f *simCMFile) Exec(cmd, mem []byte) error {
	if h, _ := f.Dialect().ParseHeader(cmd); h.Op == ucma.OpResolveIP || h.Op == ucma.OpResolveAddr {
		var err error
		switch c, _ := f.Dialect().ParseCommand(cmd); c := c.(type) {
		case ucma.ResolveIP:
			err = f.cm.wake(c.Dst)
		case ucma.ResolveAddr:
			err = f.cm.wake(c.Dst)
		}
		if err != nil {
			return err
		}
	}
	return f.Device.Exec(cmd, mem)
}

// wake starts the CM of the host that has an address, if there is one. A host whose CM
// does not start is not reached.
func (s *simCM) wake(a ucma.Sockaddr) error {
	sub := s.simulation.sub
	var p *topo.Port
	var ok bool
	if a.IB != nil {
		p, ok = sub.PortByGID(a.IB.GID)
	} else {
		p, ok = sub.PortByIP(a.IP.Addr())
	}
	if !ok || !p.LID.IsUnicast() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ucma.ErrClosed
	case s.hosts[p] != nil:
		return nil
	}
	host, err := s.start(p, nil)
	if err == nil {
		if err = s.listen(p, host); err == nil {
			return nil
		}
		delete(s.hosts, p)
		err = errors.Join(err, host.Close())
	}
	return fmt.Errorf("%w: %w", ucma.EHOSTUNREACH, err)
}
