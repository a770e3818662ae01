package script

import (
	"strconv"
	"time"

	"github.com/expr-lang/expr/vm"

	"github.com/ibsm/ibsm/mad/layout"
)

// Pos is a place in a script. Lines and columns count from 1; columns count
// characters.
type Pos struct {
	File      string
	Line, Col int
}

func (p Pos) String() string {
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Col)
}

// OnError says what follows a step that failed or could not be done.
type OnError uint8

const (
	OnErrorInherit  OnError = iota // as the enclosing step or the script says
	OnErrorStop                    // no further step, then finally
	OnErrorContinue                // the next step
)

// Script is one YAML document.
type Script struct {
	File    string
	Pos     Pos
	Version int    `key:"version"`
	Name    string `key:"name"`
	Doc     string `key:"doc"`

	On       string  `key:"on"` // endpoint; empty: the caller chooses
	OnPos    Pos     // of the value
	Vars     []Entry `key:"vars"`   // in their order: a later one may use those before it
	Params   []Entry `key:"params"` // of a file that is included; a nil Value is required
	Requires []Word  `key:"requires"`

	Timeout     time.Duration `key:"timeout"`      // of the whole run
	StepTimeout time.Duration `key:"step_timeout"` // of each step that says nothing else
	OnError     OnError       `key:"on_error"`

	Steps   []*Step `key:"steps"`
	Finally []*Step `key:"finally"`

	scope   *visible // the names known at the end of Steps; set by Check
	checked bool     // Check found nothing wrong
}

// Step is one step: what all kinds have in common, and one Body.
type Step struct {
	Pos  Pos
	Kind *Kind // its row in the table of kinds
	Body Body

	Name     string        `key:"name"`
	Doc      string        `key:"doc"`
	Section  string        `key:"section"` // of the IBA specification
	If       *Expr         `key:"if"`      // nil: always
	Requires []Word        `key:"requires"`
	Timeout  time.Duration `key:"timeout"` // 0: that of the script
	OnError  OnError       `key:"on_error"`
	Expect   []*Expr       `key:"expect"`
	Save     []Binding     `key:"save"`
}

// Body is what a step does: *Send, *ForEach, *Parallel, *Repeat, *Retry, *Wait,
// *Serve, *Connect, *Listen, *Fault, *Assert, *SetVar, *Include or *Log.
type Body interface{ body() }

// Send sends one MAD. Members that are nil were not given.
type Send struct {
	Class        *Value  `key:"class"`
	ClassVersion *Value  `key:"class_version"`
	BaseVersion  *Value  `key:"base_version"`
	Method       *Value  `key:"method"`
	Attribute    *Value  `key:"attribute"`
	Modifier     *Value  `key:"modifier"`
	To           *Value  `key:"to"`
	Set          []Entry `key:"set"`    // fields of the attribute
	Mask         *Value  `key:"mask"`   // a list of field names, or a number
	Header       []Entry `key:"header"` // fields of the headers
	Data         *Value  `key:"data"`   // hexadecimal
	Raw          *Value  `key:"raw"`    // hexadecimal
	RMPP         []Entry `key:"rmpp"`   // fields of the RMPP header
	OUI          *Value  `key:"oui"`
	TID          *Value  `key:"tid"`
	PKey         *Value  `key:"pkey"`
	QP           *Value  `key:"qp"`
	SL           *Value  `key:"sl"`
	GRH          *Value  `key:"grh"` // a bool, or a map of the keys of GRHKeys
	Length       *Value  `key:"length"`
	Timeout      *Value  `key:"timeout"`
	Retries      *Value  `key:"retries"`
	Long         *Value  `key:"long"`
	NoAnswerOK   *Value  `key:"no_answer_ok"`

	// Attr is the row of the attribute if class and attribute are constant and
	// known; set by Check.
	Attr *layout.Attribute
}

// In is what a loop goes over: one of its members is set.
type In struct {
	Pos  Pos
	Word string // ports, switches, hosts or nodes of the fabric
	List *Value
	Expr *Expr // gives a list
}

// ForEach runs its steps for each element.
type ForEach struct {
	Var   Word    `key:"var"`
	In    In      `key:"in"`
	Max   *Value  `key:"max"`
	Steps []*Step `key:"steps"`
}

// Parallel runs its steps at the same time, or, with In, all of them in turn
// for several elements at a time.
type Parallel struct {
	Max   *Value  `key:"max"`
	Var   Word    `key:"var"` // Text is empty if In is not given
	In    In      `key:"in"`
	Steps []*Step `key:"steps"`
}

// Repeat runs its steps again and again.
type Repeat struct {
	Times *Value  `key:"times"`
	Until *Expr   `key:"until"` // nil: all Times
	Every *Value  `key:"every"`
	Steps []*Step `key:"steps"`
}

// Retry runs its steps until all of them pass.
type Retry struct {
	Times *Value  `key:"times"`
	Delay *Value  `key:"delay"`
	Steps []*Step `key:"steps"`
}

// Wait lets time pass.
type Wait struct {
	For *Value `key:"for"`
	// Notice is what to wait for instead; Check refuses it.
	Notice *Value `key:"notice"`
}

// Serve answers requests of a class while its steps run, or for a time.
type Serve struct {
	Class   *Value   `key:"class"`
	Version *Value   `key:"version"`
	OUI     *Value   `key:"oui"`
	Methods *Value   `key:"methods"` // a list
	Answers []Answer `key:"answers"` // the first that fits is given
	For     *Value   `key:"for"`
	Steps   []*Step  `key:"steps"`
}

// Answer is one answer of a Serve.
type Answer struct {
	Pos       Pos
	When      *Expr   `key:"when"` // nil: always
	Attribute *Value  `key:"attribute"`
	Status    *Value  `key:"status"`
	Set       []Entry `key:"set"`
	Data      *Value  `key:"data"`
	Delay     *Value  `key:"delay"`
	Silent    *Value  `key:"silent"`
	Busy      *Value  `key:"busy"`

	Attr *layout.Attribute // as in Send
}

// Connect connects by the RDMA CM.
type Connect struct {
	To          *Value `key:"to"`
	Path        *Value `key:"path"` // sa, kernel, or a template that gives a record
	Service     *Value `key:"service"`
	PortSpace   *Value `key:"port_space"`
	PrivateData *Value `key:"private_data"`
	Source      *Value `key:"source"`
	PKey        *Value `key:"pkey"`
	QPN         *Value `key:"qpn"`
	Hold        *Value `key:"hold"`
}

// Listen waits for connections while its steps run, or until enough came.
type Listen struct {
	Address     *Value  `key:"address"`
	Service     *Value  `key:"service"`
	PortSpace   *Value  `key:"port_space"`
	PrivateData *Value  `key:"private_data"`
	QPN         *Value  `key:"qpn"`
	Reject      *Value  `key:"reject"`
	Count       *Value  `key:"count"`
	Steps       []*Step `key:"steps"`
}

// Fault makes a simulated fabric misbehave.
type Fault struct {
	Link      *Value `key:"link"`
	Down      *Value `key:"down"`
	Up        *Value `key:"up"`
	Loss      *Value `key:"loss"`
	Delay     *Value `key:"delay"`
	Duplicate *Value `key:"duplicate"`
	Reorder   *Value `key:"reorder"`
	Reboot    *Value `key:"reboot"`
	Sweep     *Value `key:"sweep"`
	SMA       *Value `key:"sma"`
	SA        *Value `key:"sa"`
	Off       *Value `key:"off"`
}

// Assert holds if all its expressions are true.
type Assert struct{ Exprs []*Expr }

// SetVar gives variables values.
type SetVar struct{ Vars []Entry }

// Include runs the steps of another file.
type Include struct {
	File Word    `key:"file"`
	With []Entry `key:"with"`

	// Script is the file, read by Load. Several steps may share it: who runs it
	// changes nothing in it.
	Script *Script
}

// Log puts a line into the report.
type Log struct{ Text *Value }

func (*Send) body()     {}
func (*ForEach) body()  {}
func (*Parallel) body() {}
func (*Repeat) body()   {}
func (*Retry) body()    {}
func (*Wait) body()     {}
func (*Serve) body()    {}
func (*Connect) body()  {}
func (*Listen) body()   {}
func (*Fault) body()    {}
func (*Assert) body()   {}
func (*SetVar) body()   {}
func (*Include) body()  {}
func (*Log) body()      {}

// Word is a text without templates and its place.
type Word struct {
	Text string
	Pos  Pos
}

// Entry is a key with its value.
type Entry struct {
	Key   string
	Pos   Pos    // of the key
	Value *Value // nil: the value is null
}

// Binding gives a variable the value of an expression.
type Binding struct {
	Name Word
	Expr *Expr
}

// Expr is an expression.
type Expr struct {
	Text string
	Pos  Pos
	// Program is set by Check. It runs on the variables and the results of the step
	// by their names.
	Program *vm.Program

	exact bool // Text stands in the file as it is, on one line
}

// functionKey is what programs call the function called name: functions and
// variables do not share names.
func functionKey(name string) string { return name + "()" }

// Shape says what a Value is.
type Shape uint8

const (
	Scalar Shape = iota
	List
	Map
)

// Value is a value of a script. Its scalars may be templates.
type Value struct {
	Pos   Pos
	Shape Shape

	// Of a scalar: as it is written, without quotes. Fields of MADs, addresses and
	// names are made from this, so that 0x0a and 010 stay what they are.
	Text string
	// Of a scalar without template: int, uint64 (above the range of int), float64,
	// bool, string, or nil for null. What is quoted is a string, and so are
	// hexadecimal numbers of more than 8 digits, as 64-bit values are everywhere.
	Const any
	// Of a template: texts and expressions in turn. A single part that is an
	// expression gives its value as it is; else all are joined to a text.
	Parts []Part

	Items   []*Value // of a list; null items are scalars with Const nil
	Entries []Entry  // of a map
}

// Part is one part of a template: a text, or an expression.
type Part struct {
	Text string
	Expr *Expr // nil: Text counts
}

// IsConst tells whether the value is known before the run: no part of it is a
// template.
func (v *Value) IsConst() bool {
	for _, item := range v.Items {
		if !item.IsConst() {
			return false
		}
	}
	for _, e := range v.Entries {
		if e.Value != nil && !e.Value.IsConst() {
			return false
		}
	}
	return len(v.Parts) == 0
}
