package sa

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ibsm/ibsm/mad"
)

// What Join, JoinOrCreate and Leave ask: the methods and component masks of the
// kernel's multicast.c and cma.c (cma_join_ib_multicast), with IB_SA_MCMEMBER_REC_*
// as bits.
func TestJoinRequests(t *testing.T) {
	const (
		mgid, portGID, qkey, pkey, tclass, sl, flow, state = 1 << 0, 1 << 1, 1 << 2, 1 << 7, 1 << 6, 1 << 12, 1 << 13, 1 << 16

		member = mgid | portGID | state
		create = member | qkey | pkey | tclass | sl | flow
	)
	synctest.Test(t, func(t *testing.T) {
		r := newDemo(t)
		var request []byte
		r.script(t, func(_ int, req []byte) [][]byte {
			request = append([]byte(nil), req...)
			return [][]byte{single(req, mad.StatusOK, 7, req[mad.OffSAData:][:mad.MCMemberRecordSize]...)}
		})
		c := r.client(t, "h2", Config{})
		own, other, group := r.gid("h2"), r.gid("h3"), gid(t, "ff12:1::1")
		join, orCreate := c.Join, c.JoinOrCreate
		leave := func(ctx context.Context, m mad.MCMemberRecord, _ ...string) (mad.MCMemberRecord, error) {
			return m, c.Leave(ctx, m)
		}
		for _, tt := range []struct {
			name   string
			do     func(context.Context, mad.MCMemberRecord, ...string) (mad.MCMemberRecord, error)
			rec    mad.MCMemberRecord
			with   []string
			method mad.Method
			mask   uint64
			port   mad.GID
			state  mad.JoinState
		}{
			{"join", join, mad.MCMemberRecord{}, nil, 0x02, member, own, 1},
			{"join another", join, mad.MCMemberRecord{PortGID: other, JoinState: 6}, []string{"Q_Key"}, 0x02, member | qkey, other, 6},
			{"create", orCreate, mad.MCMemberRecord{JoinState: 8}, nil, 0x02, create, own, 8},
			{"create with MTU", orCreate, mad.MCMemberRecord{}, []string{"MTUSelector", "MTU"}, 0x02, create | 3<<4, own, 1},
			{"leave", leave, mad.MCMemberRecord{}, nil, 0x15, member, own, 1},
			{"leave for another", leave, mad.MCMemberRecord{PortGID: other, JoinState: 3}, nil, 0x15, member, other, 3},
		} {
			tt.rec.MGID = group
			rec, err := tt.do(t.Context(), tt.rec, tt.with...)
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if method := mad.Method(request[mad.OffMethod]); method != tt.method {
				t.Errorf("%s: method %v, want %v", tt.name, method, tt.method)
			}
			if mask := binary.BigEndian.Uint64(request[offComponentMask:]); mask != tt.mask {
				t.Errorf("%s: component mask %#x, want %#x", tt.name, mask, tt.mask)
			}
			var asked mad.MCMemberRecord
			if err := asked.UnmarshalBinary(request[mad.OffSAData:][:mad.MCMemberRecordSize]); err != nil {
				t.Fatal(err)
			}
			if asked.MGID != group || asked.PortGID != tt.port || asked.JoinState != tt.state {
				t.Errorf("%s: asked for %+v", tt.name, asked)
			}
			if tt.method == mad.MethodSet && rec != asked {
				t.Errorf("%s: gives %+v, not the SA's record", tt.name, rec)
			}
		}
		if _, err := c.Join(t.Context(), mad.MCMemberRecord{MGID: group}, "QKeys"); err == nil || !strings.Contains(err.Error(), "QKeys") {
			t.Errorf("a component that is none: %v", err)
		}
	})
}

// A group, from its making to its end, by our server.
func TestJoinAndLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDemo(t)
		r.serve(t)
		h1, h2 := r.client(t, "h1", Config{}), r.client(t, "h2", Config{})
		like := mad.MCMemberRecord{QKey: 0x80010001, PKey: mad.DefaultPKey}
		group, err := h1.JoinOrCreate(t.Context(), like)
		if err != nil {
			t.Fatal(err)
		}
		if group.MGID[0] != 0xff || group.MLID < 0xc001 || group.QKey != like.QKey || group.PortGID != r.gid("h1") || group.JoinState != mad.JoinFullMember {
			t.Errorf("made %+v", group)
		}
		second, err := h2.Join(t.Context(), mad.MCMemberRecord{MGID: group.MGID, JoinState: non})
		if err != nil || second.MLID != group.MLID || second.PortGID != r.gid("h2") || second.JoinState != non {
			t.Errorf("joined %+v, %v", second, err)
		}
		path, err := Get(t.Context(), h2, Match(mad.PathRecord{SGID: r.gid("h2"), DGID: group.MGID}, "SGID", "DGID"))
		if err != nil || path.DLID != group.MLID {
			t.Errorf("path to the group: %+v, %v", path, err)
		}
		if err := h2.Leave(t.Context(), second); err != nil {
			t.Error(err)
		}
		err = h2.Leave(t.Context(), second)
		if status := (*StatusError)(nil); !errors.As(err, &status) || status.Status != mad.StatusSAReqInvalid {
			t.Errorf("left twice: %v", err)
		}
		for _, part := range []string{r.gid("h2").String(), group.MGID.String(), "NonMember", "SA at LID 1", "0x0200"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in the error %v", part, err)
			}
		}
		if err := h1.Leave(t.Context(), group); err != nil {
			t.Error(err)
		}
		_, err = h2.Join(t.Context(), mad.MCMemberRecord{MGID: group.MGID})
		if status := (*StatusError)(nil); !errors.As(err, &status) || status.Status != mad.StatusSAInsufficientComponents {
			t.Errorf("joined a group that has ended: %v", err)
		}
	})
}

// Leaving is asked for again when the answer gets lost, and then the port is no
// member any more.
func TestLeaveAnswerLost(t *testing.T) {
	for name, tt := range map[string]struct {
		lost   bool
		member mad.Status // what a Get says of the member
		ok     bool
	}{
		"left":         {true, mad.StatusSANoRecords, true},
		"still there":  {true, mad.StatusOK, false},
		"never joined": {false, mad.StatusSANoRecords, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newDemo(t)
				r.script(t, func(n int, req []byte) [][]byte {
					record := req[mad.OffSAData:][:mad.MCMemberRecordSize]
					switch {
					case n == 1 && tt.lost:
						return nil
					case mad.Method(req[mad.OffMethod]) == mad.MethodDelete:
						return [][]byte{single(req, mad.StatusSAReqInvalid, 0)}
					}
					return [][]byte{single(req, tt.member, 7, record...)}
				})
				c := r.client(t, "h2", Config{})
				err := c.Leave(t.Context(), mad.MCMemberRecord{MGID: gid(t, "ff12:1::1")})
				if (err == nil) != tt.ok {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// The answer to a Set is a GetResp (IBA 15.2.2).
func TestWrongResponseToSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDemo(t)
		r.script(t, func(_ int, req []byte) [][]byte {
			b := single(req, mad.StatusOK, 7, make([]byte, mad.MCMemberRecordSize)...)
			b[mad.OffMethod] = 0x82
			return [][]byte{b}
		})
		_, err := r.client(t, "h2", Config{}).Join(t.Context(), mad.MCMemberRecord{MGID: gid(t, "ff12:1::1")})
		if malformed := (*MalformedError)(nil); !errors.As(err, &malformed) {
			t.Errorf("error %v, want a *MalformedError", err)
		}
	})
}

// A service is registered, found by its id, and taken away.
func TestService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDemo(t)
		r.serve(t)
		h1, h2 := r.client(t, "h1", Config{}), r.client(t, "h2", Config{})
		rec := mad.ServiceRecord{ServiceID: 0x1000000000000001, ServiceGID: r.gid("h1"), ServiceLease: 60}
		copy(rec.ServiceName[:], "a service")
		kept, err := Set(t.Context(), h1, Match(rec, "ServiceID", "ServiceGID", "ServiceLease", "ServiceName"))
		if err != nil || kept.ServicePKey != mad.DefaultPKey || kept.ServiceName != rec.ServiceName {
			t.Fatalf("%+v, %v", kept, err)
		}
		byID := Match(mad.ServiceRecord{ServiceID: rec.ServiceID}, "ServiceID")
		found, err := collect(Table(t.Context(), h2, byID))
		if err != nil || len(found) != 1 || found[0].ServiceGID != rec.ServiceGID {
			t.Errorf("%+v, %v", found, err)
		}
		if gone, err := Delete(t.Context(), h1, Match(rec, "ServiceID", "ServiceGID")); err != nil || gone.ServiceName != rec.ServiceName {
			t.Errorf("%+v, %v", gone, err)
		}
		if _, err := Get(t.Context(), h2, byID); !errors.Is(err, ErrNoRecords) {
			t.Errorf("error %v, want ErrNoRecords", err)
		}
	})
}
