package server

import (
	"slices"
	"sync"
	"time"

	"github.com/ibsm/ibsm/mad"
)

// services are the services that ports have registered. The one registered first
// comes first.
type services struct {
	mu  sync.Mutex
	all []service
}

// service is a registered service.
type service struct {
	rec   mad.ServiceRecord
	until time.Time // when the lease ends; zero: never
}

// serviceID is what identifies a service (IBA 15.2.5.14).
type serviceID struct {
	id  uint64
	gid mad.GID
	key mad.PKey
}

// forever is the ServiceLease that does not end.
const forever = 0xffffffff

func idOf(rec *mad.ServiceRecord) serviceID {
	return serviceID{rec.ServiceID, rec.ServiceGID, rec.ServicePKey}
}

// expire drops the services whose lease is over.
func (v *services) expire(now time.Time) {
	v.all = slices.DeleteFunc(v.all, func(s service) bool { return !s.until.IsZero() && !now.Before(s.until) })
}

// index finds a service, -1 if it is not registered.
func (v *services) index(id serviceID) int {
	return slices.IndexFunc(v.all, func(s service) bool { return idOf(&s.rec) == id })
}

// record is the service with what is left of its lease in seconds.
func (s *service) record(now time.Time) mad.ServiceRecord {
	rec := s.rec
	if !s.until.IsZero() {
		rec.ServiceLease = uint32((s.until.Sub(now) + time.Second - 1) / time.Second)
	}
	return rec
}

// servicesOf gives the services that agree with each component of a query and whose
// partition the requester is in.
func (s *Server) servicesOf(q *query) (records, mad.Status) {
	found := records{size: mad.ServiceRecordSize}
	k := kinds[mad.AttrServiceRecord]
	f := k.filter(s, q, q.mask)
	now := time.Now()
	s.services.mu.Lock()
	defer s.services.mu.Unlock()
	s.services.expire(now)
	for i := range s.services.all {
		rec := s.services.all[i].record(now)
		if !isIn(rec.ServicePKey, q.from) {
			continue
		}
		if !f.agrees(found.add(&rec)) {
			found.drop()
		} else if found.count > s.limit(q) {
			break
		}
	}
	return found, mad.StatusOK
}

// mayServe tells whether a request is from and about ports in the service's
// partition, if it names one.
func (s *Server) mayServe(q *query, rec *mad.ServiceRecord) bool {
	if !q.has(srPKey) {
		return true
	}
	if !isIn(rec.ServicePKey, q.from) {
		return false
	}
	if !q.has(srGID) || rec.ServiceGID[0] == 0xff {
		return true
	}
	p, ok := s.sub.PortByGID(rec.ServiceGID)
	return ok && isIn(rec.ServicePKey, p)
}

// register keeps a service, in place of one with the same id, port and partition.
// Without ServiceP_Key it is of the default partition, without ServiceLease it
// stays.
func (s *Server) register(q *query) (records, mad.Status) {
	var rec mad.ServiceRecord
	rec.DecodeFrom((*[mad.ServiceRecordSize]byte)(kinds[mad.AttrServiceRecord].chosen(q)))
	if !s.mayServe(q, &rec) || !q.hasAll(srID|srGID) {
		return records{}, mad.StatusSAReqInvalid
	}
	if !q.has(srPKey) {
		rec.ServicePKey = mad.DefaultPKey
	}
	if !q.has(srLease) {
		rec.ServiceLease = forever
	}
	now := time.Now()
	registered := service{rec: rec}
	if rec.ServiceLease != forever {
		registered.until = now.Add(time.Duration(rec.ServiceLease) * time.Second)
	}
	s.services.mu.Lock()
	defer s.services.mu.Unlock()
	s.services.expire(now)
	switch i := s.services.index(idOf(&rec)); {
	case i >= 0:
		s.services.all[i] = registered
	case len(s.services.all) >= s.cfg.MaxRecords:
		return records{}, mad.StatusSANoResources
	default:
		s.services.all = append(s.services.all, registered)
	}
	found := records{size: mad.ServiceRecordSize}
	found.add(&rec)
	return found, mad.StatusOK
}

// unregister takes away the service with the id, port and partition of the
// request, whether their components count or not, as with OpenSM.
func (s *Server) unregister(q *query) (records, mad.Status) {
	var rec mad.ServiceRecord
	rec.DecodeFrom((*[mad.ServiceRecordSize]byte)(q.record))
	if !s.mayServe(q, &rec) {
		return records{}, mad.StatusSAReqInvalid
	}
	if rec.ServicePKey == 0 {
		rec.ServicePKey = mad.DefaultPKey
	}
	now := time.Now()
	s.services.mu.Lock()
	defer s.services.mu.Unlock()
	s.services.expire(now)
	i := s.services.index(idOf(&rec))
	if i < 0 {
		return records{}, mad.StatusSANoRecords
	}
	found := records{size: mad.ServiceRecordSize}
	rec = s.services.all[i].record(now)
	found.add(&rec)
	s.services.all = slices.Delete(s.services.all, i, i+1)
	return found, mad.StatusOK
}
