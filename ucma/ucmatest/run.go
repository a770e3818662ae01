package ucmatest

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ibsm/ibsm/ucma"
)

var variable = regexp.MustCompile(`\$\w+`)

const (
	// patience is how long an event is waited for, and what eventually happens.
	patience = 40 * time.Second
	// early is how much too early a kernel's timer may end.
	early = 10 * time.Millisecond
	// quiet is how long no event must come when a script is over.
	quiet = 20 * time.Millisecond
	// slow is a close that waits for something: the kernel complains after 10 s.
	slow = 9 * time.Second
)

// player plays one script.
type player struct {
	*testing.T
	bench *Bench
	name  string
	open  func() (File, error)
	files map[string]*file
	ids   map[string]*id
	vars  map[string]string
	last  time.Time // when the last command was done
}

// file is an open one, with the events that were fetched while others were looked for.
type file struct {
	File
	aside []ucma.EventResp
}

// id is an id or a membership of the script's.
type id struct {
	num  uint32
	uid  uint64
	ud   bool // its events have the parameters of a datagram id
	file *file
}

// errScript is a mistake in the script.
var errScript = errors.New("the script is wrong")

func scriptError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errScript, fmt.Errorf(format, args...))
}

func playOn(t *testing.T, b *Bench, name string, all []statement) {
	p := &player{T: t, bench: b, name: name, open: b.Host(t), files: map[string]*file{}, ids: map[string]*id{}, vars: maps.Clone(facts)}
	for _, e := range b.Except {
		p.vars[e.Name] = e.Value
	}
	if err := p.openFile("main"); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		s := &all[i]
		if err := p.do(s); err != nil {
			t.Errorf("%s.txt:%d: %s\n\t%v", name, s.line, s.text, err)
			if errors.Is(err, errScript) || errors.Is(err, context.DeadlineExceeded) {
				break // what follows would fail for that
			}
		}
	}
	for name, f := range p.files {
		if !t.Failed() {
			if err := p.noEvent(f, quiet); err != nil {
				t.Errorf("%s.txt: after the last line: file %s: %v", p.name, name, err)
			}
		}
		p.closeFile(name)
	}
}

func (p *player) openFile(name string) error {
	f, err := p.open()
	if err != nil {
		return err
	}
	p.files[name] = &file{File: f}
	return nil
}

func (p *player) closeFile(name string) {
	start := time.Now()
	if err := p.files[name].Close(); err != nil {
		p.Error(err)
	}
	delete(p.files, name)
	if took := time.Since(start); took > slow {
		p.Errorf("%s.txt: the close of file %s took %v", p.name, name, took)
	}
}

// do does one statement.
func (p *player) do(s *statement) error {
	f := p.files["main"]
	if s.mods.file != "" {
		f = p.files[s.mods.file]
	}
	if f == nil {
		return scriptError("there is no file %s", s.mods.file)
	}
	arg := strings.Join(s.args, " ")
	switch s.op {
	case "open":
		return p.openFile(s.name)
	case "close":
		if p.files[arg] == nil {
			return scriptError("there is no file %s", arg)
		}
		p.closeFile(arg)
		return nil
	case "no_event":
		var d time.Duration
		if arg != "" {
			var err error
			if d, err = time.ParseDuration(arg); err != nil {
				return scriptError("%w", err)
			}
		}
		return p.noEvent(f, d)
	case "path":
		return p.path(s)
	case "write":
		b, err := parseBytes(strings.Join(s.args, ""))
		if err != nil {
			return scriptError("%w", err)
		}
		return p.check(s, f.Exec(b, nil), nil)
	case "event":
		return p.event(s)
	}
	return p.command(s, f)
}

// path makes a struct ib_path_rec_data.
func (p *player) path(s *statement) error {
	var r ucma.PathRecData
	if err := p.fill(reflect.ValueOf(&r).Elem(), s.fields); err != nil {
		return err
	}
	p.vars[s.name] = hex.EncodeToString(ucma.SetIBPath(0, r).Value)
	return nil
}

// fill sets fields of a structure.
func (p *player) fill(v reflect.Value, fields []field) error {
	for _, f := range fields {
		text, err := expand(f.value, p.vars)
		if err == nil {
			if other := p.files[text]; other != nil {
				text = strconv.FormatUint(uint64(other.FD), 10)
			}
			err = assign(v, f.name, text)
		}
		if err != nil {
			return scriptError("%w", err)
		}
	}
	return nil
}

// check compares what came of a command with what is expected.
func (p *player) check(s *statement, err error, response []leaf) error {
	if refused := (*ucma.CommandError)(nil); errors.As(err, &refused) {
		return scriptError("the command did not get to the kernel: %w", err)
	}
	switch errno := ucma.Errno(""); {
	case s.want.errno != "":
		if !errors.As(err, &errno) || string(errno) != s.want.errno {
			return fmt.Errorf("%v, want %s", result(err), s.want.errno)
		}
		return nil
	case err != nil:
		return fmt.Errorf("%w, want no error", err)
	case !s.want.given:
		return nil
	}
	if wrong := compare(response, s.want.fields, p.vars); wrong != nil {
		return errors.New(strings.Join(wrong, "\n\t"))
	}
	return nil
}

func result(err error) any {
	if err == nil {
		return "no error"
	}
	return err
}

// event waits for the next event of an id, and compares it.
func (p *player) event(s *statement) error {
	if len(s.args) != 2 {
		return scriptError("it is: event ID TYPE")
	}
	of := p.ids[s.args[0]]
	if of == nil {
		return scriptError("there is no id %s", s.args[0])
	}
	e, err := p.next(of)
	took := time.Since(p.last)
	if err != nil {
		return err
	}
	if s.name != "" {
		p.ids[s.name] = &id{num: e.ID, ud: of.ud, file: of.file}
	}
	if e.Event.String() != s.args[1] {
		return fmt.Errorf("%v, status %d, want %s", e.Event, e.Status, s.args[1])
	}
	switch least := s.mods.after; {
	case took < least-early:
		return fmt.Errorf("it came after %v, want %v", took, least)
	case p.bench.Virtual && least != 0 && took != least:
		return fmt.Errorf("it came after %v, want exactly %v", took, least)
	}
	// A status is an errno or a number.
	got := leaves("Status", reflect.ValueOf(e.Status))
	if e.Status < 0 {
		got[0].text = string(of.file.Dialect().Errno(int(e.Status)))
	}
	if of.ud {
		got = append(got, leaves("", reflect.ValueOf(e.UD()))...)
	} else {
		got = append(got, leaves("", reflect.ValueOf(e.Conn()))...)
	}
	got = append(got, leaves("ECE", reflect.ValueOf(e.ECE))...)
	if wrong := compare(got, s.fields, p.vars); wrong != nil {
		return errors.New(strings.Join(wrong, "\n\t"))
	}
	return nil
}

// next is the next event of an id. A CONNECT_REQUEST is one of its listener's.
func (p *player) next(of *id) (e ucma.EventResp, err error) {
	mine := func(e ucma.EventResp) bool {
		return e.UID == of.uid && (e.ID == of.num || e.Event == ucma.EventConnectRequest)
	}
	f := of.file
	if i := slices.IndexFunc(f.aside, mine); i >= 0 {
		e = f.aside[i]
		f.aside = slices.Delete(f.aside, i, i+1)
		return e, nil
	}
	ctx, cancel := context.WithTimeout(p.Context(), patience)
	defer cancel()
	for {
		if err := f.Wait(ctx); err != nil {
			return e, fmt.Errorf("no event within %v: %w; of others: %v", patience, err, f.described())
		}
		if e, err = f.fetch(); err != nil {
			return e, err
		}
		if mine(e) {
			return e, nil
		}
		f.aside = append(f.aside, e)
	}
}

// fetch is GET_EVENT.
func (f *file) fetch() (e ucma.EventResp, err error) {
	return e, ucma.Do(f.Device, ucma.GetEvent{}, &e)
}

func (f *file) described() (all []string) {
	for _, e := range f.aside {
		all = append(all, fmt.Sprintf("%v of id %d, uid %d, status %d", e.Event, e.ID, e.UID, e.Status))
	}
	return all
}

// noEvent fails if there is an event, or comes one within d.
func (p *player) noEvent(f *file, d time.Duration) error {
	if d > 0 {
		ctx, cancel := context.WithTimeout(p.Context(), d)
		defer cancel()
		if err := f.Wait(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	e, err := f.fetch()
	if err == nil {
		f.aside = append(f.aside, e)
	} else if !errors.Is(err, ucma.EAGAIN) {
		return err
	}
	if len(f.aside) > 0 {
		return fmt.Errorf("there is %s", strings.Join(f.described(), "; "))
	}
	return nil
}

// command does a command of the kernel's.
func (p *player) command(s *statement, f *file) error {
	t, ok := commands[s.op]
	if !ok {
		return scriptError("there is no command %s", s.op)
	}
	v := reflect.New(t).Elem()
	var of *id
	if len(s.args) > 0 {
		of = p.ids[s.args[0]]
		if of != nil {
			if s.mods.file == "" {
				f = of.file
			}
			v.FieldByName("ID").SetUint(uint64(of.num))
		} else if err := assign(v, "ID", s.args[0]); err != nil {
			return scriptError("there is no id %s", s.args[0])
		}
	}
	if err := p.fill(v, s.fields); err != nil {
		return err
	}
	c := v.Interface().(ucma.Command)
	r := responseOf(c)
	err := p.exec(s, f, c, r)
	if s.eventually {
		stop := time.Now().Add(patience)
		for err != nil && time.Now().Before(stop) && !errors.Is(err, errScript) {
			ctx, cancel := context.WithTimeout(p.Context(), early)
			f.Wait(ctx) // an event is no reason to try again, but time is
			<-ctx.Done()
			cancel()
			err = p.exec(s, f, c, r)
		}
	}
	if err == nil && s.want.errno == "" {
		p.learn(s, f, of, c, r)
	}
	return err
}

// exec writes a command and compares what comes of it.
func (p *player) exec(s *statement, f *file, c ucma.Command, r ucma.Response) error {
	b, err := f.Dialect().AppendUnchecked(nil, c)
	if err != nil {
		return scriptError("%w", err)
	}
	m := &s.mods
	if m.in != nil {
		binary.NativeEndian.PutUint16(b[4:], uint16(*m.in))
	}
	if m.out != nil {
		binary.NativeEndian.PutUint16(b[6:], uint16(*m.out))
	}
	if m.len != nil {
		b = append(b, make([]byte, max(*m.len-len(b), 0))...)[:*m.len]
	}
	var mem []byte
	if o, ok := c.(ucma.SetOption); ok {
		mem = append(o.Value, make([]byte, max(int(o.Len)-len(o.Value), 0))...)
	} else if r != nil {
		mem = make([]byte, 4096)
	}
	err = f.Exec(b, mem)
	p.last = time.Now()
	var got []leaf
	if err == nil && r != nil {
		spec, _ := f.Dialect().Spec(c.Op()) // MIGRATE_ID does not look at out
		out := max(int(binary.NativeEndian.Uint16(b[6:])), spec.MinOut)
		if err := f.Dialect().ParseResponse(mem[:out], r); err != nil {
			return err
		}
		got = leaves("", reflect.ValueOf(r).Elem())
	}
	return p.check(s, err, got)
}

// learn keeps what a command that was done changes of the ids.
func (p *player) learn(s *statement, f *file, of *id, c ucma.Command, r ucma.Response) {
	switch c := c.(type) {
	case ucma.CreateID:
		ud := c.PS == ucma.PortSpaceUDP || c.PS == ucma.PortSpaceIPoIB || c.PS == ucma.PortSpaceIB && c.QPType == ucma.QPTypeUD
		p.ids[s.name] = &id{num: r.(*ucma.CreateIDResp).ID, uid: c.UID, ud: ud, file: f}
	case ucma.JoinIPMcast:
		p.ids[s.name] = &id{num: r.(*ucma.CreateIDResp).ID, uid: c.UID, ud: true, file: f}
	case ucma.JoinMcast:
		p.ids[s.name] = &id{num: r.(*ucma.CreateIDResp).ID, uid: c.UID, ud: true, file: f}
	case ucma.Accept:
		if c.Param.Valid {
			of.uid = c.UID
		}
	case ucma.MigrateID:
		of.file = f
	}
}

// commands are the structures by the names of their commands.
var commands = func() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, c := range []ucma.Command{
		ucma.CreateID{}, ucma.DestroyID{}, ucma.BindIP{}, ucma.ResolveIP{}, ucma.ResolveRoute{}, ucma.QueryRoute{}, ucma.Connect{},
		ucma.Listen{}, ucma.Accept{}, ucma.Reject{}, ucma.Disconnect{}, ucma.InitQPAttr{}, ucma.GetEvent{}, ucma.SetOption{}, ucma.Notify{},
		ucma.JoinIPMcast{}, ucma.LeaveMcast{}, ucma.MigrateID{}, ucma.Query{}, ucma.Bind{}, ucma.ResolveAddr{}, ucma.JoinMcast{},
		ucma.ResolveIBService{}, ucma.WriteCMEvent{},
	} {
		all[strings.ToLower(c.Op().String())] = reflect.TypeOf(c)
	}
	return all
}()

// responseOf is the structure that a command is answered with.
func responseOf(c ucma.Command) ucma.Response {
	switch c := c.(type) {
	case ucma.CreateID, ucma.JoinIPMcast, ucma.JoinMcast:
		return new(ucma.CreateIDResp)
	case ucma.DestroyID, ucma.LeaveMcast, ucma.MigrateID:
		return new(ucma.DestroyIDResp)
	case ucma.QueryRoute:
		return new(ucma.QueryRouteResp)
	case ucma.InitQPAttr:
		return new(ucma.QPAttr)
	case ucma.GetEvent:
		return new(ucma.EventResp)
	case ucma.Query:
		switch c.Option {
		case ucma.QueryPath:
			return new(ucma.QueryPathResp)
		case ucma.QueryIBService:
			return new(ucma.QueryIBServiceResp)
		}
		return new(ucma.QueryAddrResp)
	}
	return nil
}
