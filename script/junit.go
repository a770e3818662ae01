package script

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// JUnit writes a run as the XML that continuous integration reads (the format of
// Ant's JUnit task): a testsuite for the script, and in it a testcase for each step that
// counts. Testcases are written as they come; the counts at the head, which come first,
// are put in by Close.
type JUnit struct {
	w     io.WriteSeeker
	suite string
	start time.Time
	err   error
	extra int               // testcases of what is no step, all errors
	names map[StepID]string // of the steps that hold others, with theirs in front
}

// NewJUnit starts a report of the script called suite at w, which is empty.
func NewJUnit(w io.WriteSeeker, suite string) *JUnit {
	j := &JUnit{w: w, suite: suite, start: time.Now(), names: make(map[StepID]string)}
	head, err := j.head(Counts{}, 0)
	if err == nil {
		_, err = w.Write(head)
	}
	j.err = err
	return j
}

type junitSuite struct {
	XMLName   xml.Name `xml:"testsuite"`
	Name      string   `xml:"name,attr"`
	Tests     int      `xml:"tests,attr"`
	Failures  int      `xml:"failures,attr"`
	Errors    int      `xml:"errors,attr"`
	Skipped   int      `xml:"skipped,attr"`
	Time      string   `xml:"time,attr"`
	Timestamp string   `xml:"timestamp,attr"`
}

type junitCase struct {
	XMLName   xml.Name     `xml:"testcase"`
	Name      string       `xml:"name,attr"`
	Classname string       `xml:"classname,attr"`
	Time      string       `xml:"time,attr"`
	Skipped   *junitResult `xml:"skipped"`
	Error     *junitResult `xml:"error"`
	Failure   *junitResult `xml:"failure"`
	SystemOut string       `xml:"system-out,omitempty"`
}

type junitResult struct {
	Message string `xml:"message,attr,omitempty"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// headRoom is for the digits of counts and times, which are not known at first.
const headRoom = 6 * 20

// head is what stands before the testcases, with blanks at its end so that its length is
// always the same.
func (j *JUnit) head(c Counts, d time.Duration) ([]byte, error) {
	tag := func(c Counts, d time.Duration) ([]byte, error) {
		b, err := xml.Marshal(junitSuite{
			Name: j.suite, Tests: c.Steps, Failures: c.Failed, Errors: c.Errors, Skipped: c.Skipped,
			Time: seconds(d), Timestamp: j.start.UTC().Format("2006-01-02T15:04:05"),
		})
		return bytes.TrimSuffix(b, []byte("></testsuite>")), err
	}
	empty, err := tag(Counts{}, 0)
	if err != nil {
		return nil, err
	}
	b, err := tag(c, d)
	if err != nil {
		return nil, err
	}
	b = append(b, strings.Repeat(" ", max(0, len(empty)+headRoom-len(b)))...)
	return fmt.Appendf(nil, "%s<testsuites>\n%s>\n", xml.Header, b), nil
}

// Report takes an event of the run.
func (j *JUnit) Report(e *Event) {
	switch e.Kind {
	case EventBegin:
		if e.Holds {
			j.names[e.Step] = j.name(e)
		}
	case EventEnd:
		name := j.name(e)
		delete(j.names, e.Step)
		if counts := !e.Holds || e.Own; counts && !(e.Tolerated && e.Verdict.bad()) {
			j.write(e, name)
		}
	}
}

// name is the step's with those that hold it.
func (j *JUnit) name(e *Event) string {
	name := e.title()
	if above, ok := j.names[e.Parent]; ok {
		name = above + " / " + name
	}
	return name
}

func (j *JUnit) write(e *Event, name string) {
	c := junitCase{Name: name, Classname: j.suite, Time: seconds(e.Duration), SystemOut: e.Detail}
	if e.Section != "" {
		c.Classname += "." + strings.ReplaceAll(e.Section, ".", "_") // a dot begins a package
	}
	switch e.Verdict {
	case Passed:
	case Skipped:
		c.Skipped, c.SystemOut = &junitResult{Message: e.Detail}, ""
	default:
		r := &junitResult{Message: e.Detail, Type: e.Verdict.String()}
		if e.Failure != nil {
			r.Message = e.Failure.String()
			r.Text = "\n" + string(appendFailure(nil, 0, e.Failure))
		}
		if e.Verdict == Failed {
			c.Failure = r
		} else {
			c.Error = r
		}
	}
	if j.err != nil {
		return
	}
	j.put(&c)
}

// put writes a testcase.
func (j *JUnit) put(c *junitCase) {
	b, err := xml.MarshalIndent(c, "", "  ")
	if err == nil {
		_, err = j.w.Write(append(b, '\n'))
	}
	j.err = err
}

// Error writes a testcase for what is wrong outside of all steps: a mistake in the script,
// or why it did not run.
func (j *JUnit) Error(name, kind, message string) {
	if j.err != nil {
		return
	}
	j.extra++
	j.put(&junitCase{Name: name, Classname: j.suite, Time: seconds(0), Error: &junitResult{Message: message, Type: kind}})
}

// Close ends the report; o is nil if the script did not run. The error is the first of all
// writes; the caller closes what is written to.
func (j *JUnit) Close(o *Outcome) error {
	if o == nil {
		o = &Outcome{}
	}
	if o.Verdict == Interrupted { // between two steps, maybe, so that all have passed
		j.Error(j.suite, o.Verdict.String(), "interrupted: not all steps have run")
	}
	if j.err != nil {
		return j.err
	}
	if _, err := io.WriteString(j.w, "</testsuite>\n</testsuites>\n"); err != nil {
		return err
	}
	counts := o.Counts
	counts.add(Counts{Steps: j.extra, Errors: j.extra})
	head, err := j.head(counts, o.Duration)
	if err != nil {
		return err
	}
	if _, err := j.w.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = j.w.Write(head)
	return err
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 6, 64) }
