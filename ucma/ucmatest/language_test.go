package ucmatest

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibsm/ibsm/ucma"
)

func TestParse(t *testing.T) {
	all, err := parse("# nothing\n\nb = create_id UID=1 PS=TCP file=f2 # an id\neventually query b\n\tOption=ADDR ->\tPortNum=1\n\tSrc=[::1]:5 Dst=a=b\nlisten b -> errno 524\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []statement{
		{line: 3, text: "b = create_id UID=1 PS=TCP file=f2", name: "b", op: "create_id", fields: []field{{"UID", "1"}, {"PS", "TCP"}}, mods: mods{file: "f2"}},
		{line: 4, text: "eventually query b Option=ADDR -> PortNum=1 Src=[::1]:5 Dst=a=b", eventually: true, op: "query", args: []string{"b"},
			fields: []field{{"Option", "ADDR"}}, want: want{given: true, fields: []field{{"PortNum", "1"}, {"Src", "[::1]:5"}, {"Dst", "a=b"}}}},
		{line: 7, text: "listen b -> errno 524", op: "listen", args: []string{"b"}, want: want{given: true, errno: "errno 524"}},
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("got\n%+v, want\n%+v", all, want)
	}
	for _, bad := range []string{"\tUID=1", "eventually", "listen a backlog=1", "listen a in=x", "event a X after=soon", "query a -> PortNum=1 x"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is no error", bad)
		}
	}
}

func TestCompare(t *testing.T) {
	r := ucma.QPAttr{Mask: ucma.QPAttrState | ucma.QPAttrPort, State: ucma.QPStateRTR, PortNum: 1, RQPSN: 77}
	r.AH.IsGlobal = true
	got := leaves("", reflect.ValueOf(r))
	for _, tt := range []struct {
		want  string
		wrong string // "" nothing
	}{
		{"Mask=STATE|PORT State=RTR PortNum=1 RQPSN=$psn AH.IsGlobal=true", ""},
		{"Mask=0x21 State=2 PortNum=0x1 RQPSN=* AH.IsGlobal=true", ""},
		{"Mask=STATE|PORT State=RTR PortNum=1 RQPSN=$seen AH.IsGlobal=true", "RQPSN=77, want 78"},
		{"Mask=STATE State=RTR PortNum=1 RQPSN=77 AH.IsGlobal=true", "Mask=STATE|PORT, want STATE"},
		{"Mask=STATE|PORT State=RTR PortNum=1 RQPSN=77", "AH.IsGlobal=true, want zero"},
		{"Mask=STATE|PORT State=RTR PortNum=1 RQPSN=77 AH.IsGlobal=true SQPSN=0", ""},
		{"Mask=STATE|PORT State=RTR PortNum=1 RQPSN=77 AH.IsGlobal=true PSN=0", "there is no PSN"},
	} {
		var s statement
		s.text = "query a -> " + tt.want
		if err := s.parse(); err != nil {
			t.Fatal(err)
		}
		vars := map[string]string{"seen": "78"}
		if wrong := strings.Join(compare(got, s.want.fields, vars), "; "); wrong != tt.wrong {
			t.Errorf("%s: %q, want %q", tt.want, wrong, tt.wrong)
		}
		if v, set := vars["psn"]; set != strings.Contains(tt.want, "$psn") || set && v != "77" {
			t.Errorf("%s: psn is %q", tt.want, v)
		}
	}
	data := leaves("", reflect.ValueOf(ucma.ConnParam{PrivateData: []byte("xxx\x00\x00")}))
	for want, same := range map[string]bool{"xxx/5": true, "x*3/5": true, "hex:787878/5": true, "xxx/4": false, "xx/5": false, "xxx": false, "/5": false} {
		if wrong := compare(data, []field{{"PrivateData", want}}, nil); (wrong == nil) != same {
			t.Errorf("PrivateData=%s: %q", want, wrong)
		}
	}
}

// fake is a kernel with one id of each kind, which answers what a test says.
type fake struct {
	answer error
	later  int // so many commands fail before answer holds
	events []ucma.EventResp
	after  time.Duration // until there is an event
}

func (*fake) Dialect() *ucma.Dialect { return ucma.Linux }
func (*fake) Close() error           { return nil }

func (f *fake) Wait(ctx context.Context) error {
	if len(f.events) > 0 {
		late, cancel := context.WithTimeout(ctx, f.after)
		defer cancel()
		<-late.Done()
		return ctx.Err()
	}
	<-ctx.Done()
	return ctx.Err()
}

func (f *fake) Exec(cmd, mem []byte) error {
	c, err := ucma.Linux.ParseCommand(cmd)
	if err != nil {
		return ucma.EINVAL
	}
	var r ucma.Response
	switch c.(type) {
	case ucma.CreateID:
		r = &ucma.CreateIDResp{ID: 5}
	case ucma.GetEvent:
		if len(f.events) == 0 {
			return ucma.EAGAIN
		}
		r = &f.events[0]
		f.events = f.events[1:]
	default:
		if f.later > 0 {
			f.later--
			return ucma.EINVAL
		}
		return f.answer
	}
	b, err := ucma.Linux.AppendResponse(nil, r)
	copy(mem, b)
	return err
}

// What a script does not expect is an error.
func TestStatements(t *testing.T) {
	resolved := ucma.EventResp{UID: 1, ID: 5, Event: ucma.EventAddrResolved}
	failed := ucma.EventResp{UID: 1, ID: 5, Event: ucma.EventAddrError, Status: -110}
	foreign := ucma.EventResp{UID: 2, ID: 6, Event: ucma.EventAddrResolved}
	request := ucma.EventResp{UID: 1, ID: 9, Event: ucma.EventConnectRequest}
	for _, tt := range []struct {
		text string
		fake fake
		err  string // in it; "" none
	}{
		{"listen a", fake{}, ""},
		{"listen a", fake{answer: ucma.EINVAL}, "EINVAL, want no error"},
		{"listen a -> EINVAL", fake{answer: ucma.EINVAL}, ""},
		{"listen a -> EINVAL", fake{}, "no error, want EINVAL"},
		{"listen a -> EINVAL", fake{answer: ucma.ENOENT}, "ENOENT, want EINVAL"},
		{"listen a -> EINVAL", fake{answer: &ucma.CommandError{Dialect: ucma.Linux, Err: ucma.EINVAL}}, "did not get to the kernel"},
		{"listen a", fake{later: 3}, "EINVAL"},
		{"eventually listen a", fake{later: 3}, ""},
		{"eventually listen a", fake{answer: ucma.EINVAL}, "EINVAL, want no error"},
		{"listen nobody", fake{}, "no id nobody"},
		{"listen a Log=1", fake{}, "no field Log"},
		{"listen a file=f3", fake{}, "no file f3"},
		{"listen a Backlog=$n", fake{}, "$n has no value"},
		{"hear a", fake{}, "no command hear"},
		{"write hex:0d", fake{}, "EINVAL, want no error"},
		{"write hex:0d -> EINVAL", fake{}, ""},
		{"event a ADDR_RESOLVED", fake{events: []ucma.EventResp{resolved}}, ""},
		{"event a ADDR_RESOLVED", fake{events: []ucma.EventResp{foreign, resolved}}, ""},
		{"event a ADDR_RESOLVED", fake{events: []ucma.EventResp{failed, resolved}}, "ADDR_ERROR, status -110, want ADDR_RESOLVED"},
		{"event a ADDR_RESOLVED", fake{events: []ucma.EventResp{foreign}}, "no event within"},
		{"event a ADDR_ERROR Status=ETIMEDOUT", fake{events: []ucma.EventResp{failed}}, ""},
		{"event a ADDR_ERROR", fake{events: []ucma.EventResp{failed}}, "Status=ETIMEDOUT, want zero"},
		{"event a ADDR_RESOLVED after=2s", fake{events: []ucma.EventResp{resolved}, after: 2 * time.Second}, ""},
		{"event a ADDR_RESOLVED after=2s", fake{events: []ucma.EventResp{resolved}, after: time.Second}, "after 1s, want 2s"},
		{"event a ADDR_RESOLVED after=2s", fake{events: []ucma.EventResp{resolved}, after: 3 * time.Second}, "after 3s, want exactly 2s"},
		{"c = event a CONNECT_REQUEST", fake{events: []ucma.EventResp{request}}, "PrivateData"},
		{"no_event", fake{}, ""},
		{"no_event 1s", fake{}, ""},
		{"no_event 1s", fake{events: []ucma.EventResp{foreign}}, "there is ADDR_RESOLVED of id 6"},
	} {
		if strings.HasSuffix(tt.text, "CONNECT_REQUEST") { // the length of private data counts
			tt.fake.events[0].Param.SetConn(ucma.ConnParam{PrivateData: make([]byte, 56)})
		}
		t.Run(tt.text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &player{T: t, bench: &Bench{Virtual: true}, ids: map[string]*id{}, files: map[string]*file{}, vars: maps.Clone(facts)}
				p.files["main"] = &file{File: File{Device: &tt.fake}}
				p.last = time.Now()
				for _, text := range []string{"a = create_id UID=1 PS=TCP", tt.text} {
					s := statement{text: text}
					err := errors.Join(s.parse(), p.do(&s))
					if want := tt.err; text != tt.text {
						if err != nil {
							t.Fatal(err)
						}
					} else if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
						t.Errorf("%v, want %q", err, want)
					}
				}
			})
		})
	}
}

// All scripts can be read, whether a bench runs them here or not.
func TestScripts(t *testing.T) {
	names, err := scripts.ReadDir("scripts")
	if err != nil || len(names) < 20 {
		t.Fatalf("%d scripts, %v", len(names), err)
	}
	used := map[string]bool{}
	for _, e := range names {
		text, err := scripts.ReadFile("scripts/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		all, err := parse(string(text))
		if err != nil {
			t.Errorf("%s: %v", e.Name(), err)
		}
		for _, s := range all {
			used[s.op] = true
		}
	}
	for name := range commands {
		if !used[name] {
			t.Errorf("no script has the command %s", name)
		}
	}
}
