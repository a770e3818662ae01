package ucma

import (
	"context"
	"fmt"
	"reflect"

	"github.com/ibsm/ibsm/mad"
)

// route gives the id a path, and checks that the kernel has it.
func (c *Connection) route(ctx context.Context, target Target, cfg *ConnectConfig) error {
	f := c.flow
	fed := cfg.PathRecord
	switch own := cfg.Path != nil || fed != nil; {
	case own && c.ch.dialect == Illumos:
		fed = nil
		if err := f.step(ctx, StepTakePath, func() (string, error) {
			return "none: illumos cannot be given a path, its kernel resolves the route", nil
		}); err != nil {
			return err
		}
	case own && fed == nil:
		if err := f.step(ctx, StepTakePath, func() (detail string, err error) {
			fed, err = c.ask(ctx, target, cfg)
			if err != nil {
				return "", err
			}
			return pathText(fed), nil
		}); err != nil {
			return err
		}
	}
	var err error
	if fed != nil {
		c.Fed = fed
		f.use(fed)
		err = f.step(ctx, StepSetPath, func() (string, error) {
			if err := c.hasLIDs(fed); err != nil {
				return "", err
			}
			if err := c.id.SetPath(fed); err != nil {
				return "", err
			}
			_, err := c.id.Wait(ctx, EventRouteResolved)
			return pathText(fed), err
		})
	} else {
		err = f.step(ctx, StepResolveRoute, func() (string, error) {
			if err := c.id.ResolveRoute(cfg.ResolveTimeout); err != nil {
				return "", err
			}
			_, err := c.id.Wait(ctx, EventRouteResolved)
			return "by the kernel", err
		})
	}
	if err != nil {
		return err
	}
	return c.check(ctx)
}

// ask has the PathSource find a path between the GIDs that the address resolved to.
func (c *Connection) ask(ctx context.Context, target Target, cfg *ConnectConfig) (*mad.PathRecord, error) {
	r, err := c.id.QueryRoute()
	if err != nil {
		return nil, err
	}
	like := mad.PathRecord{
		SGID: r.Paths[0].SGID, DGID: r.Paths[0].DGID, PKey: r.Paths[0].PKey,
		ServiceID: ServiceID(cfg.PortSpace, target.Addr), Reversible: true, NumbPath: 1,
	}
	path, err := cfg.Path.Path(ctx, like)
	if err != nil {
		return nil, fmt.Errorf("path from %v to %v, P_Key %v: %w", like.SGID, like.DGID, like.PKey, err)
	}
	return &path, nil
}

// hasLIDs checks that a path has LIDs if it needs them: the kernel would send to LID 0.
// Before there is a path, QUERY_ROUTE tells GIDs that are the IP addresses if the port is
// an Ethernet one (ucma.c, ucma_copy_iboe_route), and those of the ports if not.
func (c *Connection) hasLIDs(path *mad.PathRecord) error {
	if path.DLID != 0 && path.SLID != 0 {
		return nil
	}
	r, err := c.id.QueryRoute()
	if err != nil {
		return err
	}
	p := &r.Paths[0]
	if p.SGID == gidOf(r.Src) && p.DGID == gidOf(r.Dst) {
		return nil
	}
	name := "DLID"
	if path.DLID != 0 {
		name = "SLID"
	}
	return c.id.failed(c.id.State(), &CommandError{
		Dialect: c.ch.dialect, Op: OpSetOption, Field: name, Rule: "0", Err: EINVAL,
		Fix: "a path between InfiniBand ports has LIDs",
	})
}

// fitsWire checks that a path survives its wire form: the kernel gets the values cut off
// to the widths of the fields.
func fitsWire(d *Dialect, path *mad.PathRecord) error {
	var b [mad.PathRecordSize]byte
	var sent mad.PathRecord
	path.EncodeTo(&b)
	sent.DecodeFrom(&b)
	for _, f := range mismatches(path, &sent) {
		for _, field := range path.Layout().Fields {
			if field.Name == f.Name {
				return &CommandError{
					Dialect: d, Op: OpSetOption, Field: f.Name, Rule: f.Fed, Err: EINVAL,
					Fix: fmt.Sprintf("it has %d bits: at most %d", field.Len, uint64(1)<<field.Len-1),
				}
			}
		}
	}
	return nil
}

// check asks what path the kernel has, and compares it with the one that was set.
func (c *Connection) check(ctx context.Context) error {
	err := c.flow.step(ctx, StepQueryRoute, func() (detail string, err error) {
		if c.Route, err = c.id.QueryRoute(); err != nil {
			return "", err
		}
		c.Path = c.Route.Paths[0].PathRecord()
		if c.Fed == nil {
			return pathText(&c.Path), nil
		}
		return pathText(&c.Path), compareRoute(c.Fed, &c.Route)
	})
	if err != nil {
		return err
	}
	if c.Fed == nil {
		c.flow.use(&c.Path)
	}
	if !c.id.has(OpQuery) {
		return nil
	}
	return c.flow.step(ctx, StepQueryPath, func() (string, error) {
		r, err := c.id.QueryPath()
		if err != nil {
			return "", err
		}
		if c.Fed == nil {
			return fmt.Sprintf("number of paths: %d", r.NumPaths), nil
		}
		return "as it was set", comparePath(c.Fed, &r, isEthernet(&c.Route))
	})
}

// isEthernet tells by the route of an id with a path whether its port is an Ethernet
// one: the kernel reports no LIDs there, not even those of a path that was set, and
// elsewhere no path without them is set here.
func isEthernet(r *QueryRouteResp) bool { return r.Paths[0].DLID == 0 && r.Paths[0].SLID == 0 }

// gidOf is the GID of an IP address (ib_addr.h, rdma_ip2gid); zero of AF_UNSPEC.
func gidOf(a Sockaddr) (gid mad.GID) {
	if a.IP.IsValid() {
		gid = a.IP.Addr().As16()
	}
	return gid
}

// compareRoute compares what QUERY_ROUTE has: all but ServiceID and QoSClass; on
// Ethernet neither LIDs nor RawTraffic (uverbs_marshall.c, ib_copy_path_rec_to_user).
func compareRoute(fed *mad.PathRecord, r *QueryRouteResp) error {
	if r.NumPaths != 1 {
		return paths("QUERY_ROUTE", r.NumPaths)
	}
	want := *fed
	want.ServiceID, want.QoSClass = 0, 0
	if isEthernet(r) {
		want.DLID, want.SLID, want.RawTraffic = 0, 0, false
	}
	got := r.Paths[0].PathRecord()
	return compare("QUERY_ROUTE", &want, &got)
}

// comparePath compares what QUERY PATH has: every field, but on Ethernet the MAC
// address lies over LIDs and RawTraffic (sa_query.c, path_rec_table; ib_sa.h, struct
// sa_path_rec).
func comparePath(fed *mad.PathRecord, r *QueryPathResp, ethernet bool) error {
	if r.NumPaths != 1 || len(r.Paths) != 1 {
		return paths("QUERY PATH", r.NumPaths)
	}
	want, got := *fed, r.Paths[0].Path
	if ethernet {
		got.DLID, got.SLID, got.RawTraffic = want.DLID, want.SLID, want.RawTraffic
	}
	return compare("QUERY PATH", &want, &got)
}

func paths(command string, n uint32) error {
	return &PathMismatchError{Command: command, Fields: []FieldMismatch{{Name: "number of paths", Fed: "1", Reported: fmt.Sprint(n)}}}
}

func compare(command string, fed, reported *mad.PathRecord) error {
	if bad := mismatches(fed, reported); bad != nil {
		return &PathMismatchError{Command: command, Fields: bad}
	}
	return nil
}

func mismatches(fed, reported *mad.PathRecord) (bad []FieldMismatch) {
	a, b := reflect.ValueOf(*fed), reflect.ValueOf(*reported)
	for i, f := range reflect.VisibleFields(a.Type()) {
		if !f.IsExported() {
			continue // reserved: the kernel drops it
		}
		if x, y := a.Field(i).Interface(), b.Field(i).Interface(); x != y {
			bad = append(bad, FieldMismatch{Name: f.Name, Fed: fmt.Sprint(x), Reported: fmt.Sprint(y)})
		}
	}
	return bad
}
