package script

import (
	"strings"
	"time"
)

// Type says what the value of a key is.
type Type uint8

const (
	TypeText      Type = iota // text without templates
	TypeTemplate              // text, templates among it
	TypeValue                 // anything
	TypeBool                  // true or false
	TypeInt                   // whole number
	TypeFraction              // number from 0 to 1
	TypeDuration              // 500ms, 2s, 1m30s
	TypeWord                  // one of Words
	TypeWords                 // list of Words
	TypeExpr                  // expression
	TypeExprs                 // list of expressions, or one
	TypeAddress               // address of a port
	TypeHex                   // bytes in hexadecimal
	TypeEndpoint              // where a run stands
	TypeClass                 // management class
	TypeMethod                // method of a MAD
	TypeMethods               // list of methods
	TypeAttribute             // attribute of the class
	TypeStatus                // status of a MAD
	TypeFields                // map: fields of the attribute
	TypeHeader                // map: fields of the headers
	TypeRMPP                  // map: fields of the RMPP header
	TypeMask                  // list of fields, or a number
	TypeGRH                   // true, or a map of GRHKeys
	TypeValues                // map: names and values
	TypeBindings              // map: names and expressions
	TypeName                  // name of a variable
	TypeLoop                  // what a loop goes over
	TypeSteps                 // list of steps
	TypeAnswers               // list of maps of AnswerKeys
	TypeNotice                // which notice
	TypePath                  // sa, kernel or a record
)

// typeNames say what a key takes, for messages and the reference.
var typeNames = [...]string{
	TypeText: "a text", TypeTemplate: "a text, templates allowed", TypeValue: "any value", TypeBool: "true or false",
	TypeInt: "a whole number", TypeFraction: "a number from 0 to 1", TypeDuration: "a duration", TypeWord: "a word",
	TypeWords: "a list of words", TypeExpr: "an expression", TypeExprs: "an expression or a list of them",
	TypeAddress: "an address", TypeHex: "bytes in hexadecimal", TypeEndpoint: "an endpoint", TypeClass: "a class",
	TypeMethod: "a method", TypeMethods: "a list of methods", TypeAttribute: "an attribute", TypeStatus: "a status",
	TypeFields: "a map of fields", TypeHeader: "a map of fields", TypeRMPP: "a map of fields",
	TypeMask: "a list of fields or a number", TypeGRH: "true, false or a map", TypeValues: "a map of names and values",
	TypeBindings: "a map of names and expressions", TypeName: "a name", TypeLoop: "a word, a list or an expression",
	TypeSteps: "a list of steps", TypeAnswers: "a list of answers", TypeNotice: "a notice", TypePath: "sa, kernel or a record",
}

func (t Type) String() string { return typeNames[t] }

// Key is a row of the table: one key of the language.
type Key struct {
	Name     string
	Type     Type
	Required bool
	Default  string   // as it is written; "" if there is none
	Words    []string // of TypeWord and TypeWords
	Min, Max uint64   // of TypeInt
	Doc      string
	Example  string // value, as it is written
}

// Kind is a row of the table: one kind of step.
type Kind struct {
	Name    string // the key that makes a step one of this kind
	Doc     string
	Example string // the key with its value, as it is written
	// Short is the type of a value that is no map of Keys: it stands for the first
	// of them, or is all there is if the kind has none.
	Short   Type
	IsShort bool
	Keys    []Key
	// Results are the variables that the step's expect and save have.
	Results []ResultVar
	new     func() Body
}

// ResultVar is a variable that a step sets for its own expect and save.
type ResultVar struct {
	Name string
	Type ValueType
	Doc  string
}

// ValueType says what a value of expressions is.
type ValueType string

// The types of values. That of what a script gives a variable is not known before
// the run.
const (
	Unknown  ValueType = ""
	Text     ValueType = "text"
	Number   ValueType = "number"
	Bool     ValueType = "true or false"
	Duration ValueType = "duration"
	Time     ValueType = "time"
	MapOf    ValueType = "map"
	ListOf   ValueType = "list"
)

// Function is a row of the table: one function of expressions.
type Function struct {
	Name string
	Args string // as a reader needs them
	Type ValueType
	// Own tells that the function is of this language, and not of the expression
	// language.
	Own     bool
	Doc     string
	Example string
}

// Bounds of a script, whoever wrote it.
const (
	MaxDocument     = 1 << 20    // bytes of a file
	MaxNodes        = 10_000     // YAML nodes of a file, aliases counted as what they stand for
	MaxIncludeDepth = 8          // files in files
	MaxFiles        = 64         // different files of one script
	MaxStepDepth    = 32         // steps in steps
	MaxIterations   = 1_000_000  // of one loop
	MaxStepsRun     = 10_000_000 // of one run
	MaxParallel     = 256        // steps at a time
)

// Defaults of the top-level keys.
const (
	DefaultTimeout     = 10 * time.Minute
	DefaultStepTimeout = 30 * time.Second
)

// Requirements are the words of requires, with what each asks of the place
// where the script runs.
var Requirements = []struct{ Word, Doc string }{
	{"sa", "there is a subnet administrator to ask"},
	{"rmpp", "long answers come whole, by RMPP"},
	{"sa-set", "the SA takes Set and Delete"},
	{"busy", "the SA can be made to answer busy"},
	{"sma-set", "SM agents take Set"},
	{"fault", "steps `fault` work: a simulated fabric"},
	{"cm", "there is an RDMA CM, for `connect` and `listen`"},
	{"serve", "requests of others come to the port, for `serve`"},
	{"sim", "the fabric is simulated"},
}

var onErrorWords = []string{"stop", "continue"}

// TopKeys are the keys of a document.
var TopKeys = []Key{
	{Name: "version", Type: TypeInt, Required: true, Min: 1, Max: 1, Doc: "of the language: 1", Example: "1"},
	{Name: "name", Type: TypeText, Doc: "of the script, for reports. The file's name, if it is not given", Example: "quickstart"},
	{Name: "doc", Type: TypeText, Doc: "what the script is for; `ibsm run --list` shows it", Example: "the way from a path to a connection"},
	{Name: "on", Type: TypeEndpoint, Doc: "endpoint where the script runs, unless `--on` names another", Example: "sim:demo"},
	{Name: "vars", Type: TypeValues, Doc: "variables and their values. One may use those above it; `--var NAME=VALUE` gives another value", Example: "{src: h1, dst: h8}"},
	{Name: "params", Type: TypeValues, Doc: "variables that whoever includes the file may give with `with`, and their values if he does not; null: he must", Example: "{dst: null, count: 3}"},
	{Name: "requires", Type: TypeWords, Words: requirementWords(), Doc: "what the place must have; else every step is skipped", Example: "[cm]"},
	{Name: "timeout", Type: TypeDuration, Default: "10m", Doc: "time limit of the run", Example: "1m"},
	{Name: "step_timeout", Type: TypeDuration, Default: "30s", Doc: "time limit of each step that has no `timeout` of its own. Steps with steps inside have none", Example: "5s"},
	{Name: "on_error", Type: TypeWord, Default: "stop", Words: onErrorWords, Doc: "what follows a step that failed or could not be done", Example: "continue"},
	{Name: "steps", Type: TypeSteps, Required: true, Doc: "what to do, one after another", Example: "[{log: hello}]"},
	{Name: "finally", Type: TypeSteps, Doc: "steps that run at the end, whatever happened, also after Ctrl-C, within 10 s", Example: "[{log: bye}]"},
}

// StepKeys are the keys that every step may have beside its kind.
var StepKeys = []Key{
	{Name: "name", Type: TypeText, Doc: "of the step, for reports; no other step beside it has the same", Example: "path from h1 to h8"},
	{Name: "doc", Type: TypeText, Doc: "what the step is for", Example: "the SA must know both ends"},
	{Name: "section", Type: TypeText, Doc: "section of the IBA specification that the step is about", Example: "IBA 15.2.5.16"},
	{Name: "if", Type: TypeExpr, Doc: "the step is skipped unless this is true", Example: "len(paths) > 0"},
	{Name: "requires", Type: TypeWords, Words: requirementWords(), Doc: "what the place must have; else the step is skipped", Example: "[rmpp]"},
	{Name: "timeout", Type: TypeDuration, Doc: "time limit of the step. Default: `step_timeout`; none for steps with steps inside", Example: "5s"},
	{Name: "on_error", Type: TypeWord, Words: onErrorWords, Doc: "what follows if the step fails. Default: as the steps around it", Example: "continue"},
	{Name: "expect", Type: TypeExprs, Doc: "what must be true afterwards, each true or false", Example: `[status == "ok", count > 0]`},
	{Name: "save", Type: TypeBindings, Doc: "variables that get the value of an expression, if all of `expect` held", Example: "{path: record}"},
}

func requirementWords() []string {
	words := make([]string, len(Requirements))
	for i, r := range Requirements {
		words[i] = r.Word
	}
	return words
}

// Functions are the functions of expressions. Those of the expression language
// itself that a script has most use for stand here too.
var Functions = []Function{
	{"gid", "x", Text, true, "the GID of the port with the address x", `gid("h1")`},
	{"lid", "x", Number, true, "the LID of the port with the address x", `lid("h1")`},
	{"guid", "x", Text, true, "the port GUID of the port with the address x", `guid("h1")`},
	{"port", "x", MapOf, true, "what the SA knows of the port with the address x: " + keyList(PortKeys), `port("h1").lid`},
	{"path", "src, dst", MapOf, true, "the PathRecord between two addresses, as the SA gives it", `path("h1", "h8").MTU`},
	{"hex", "n", Text, true, "a number in hexadecimal, after 0x; of a text, its bytes in hexadecimal", "hex(255)"},
	{"mtu", "x", Number, true, "bytes of an MTU, from its name or its code", `mtu("4096")`},
	{"rate", "x", Number, true, "Gb/s of a rate, from its name or its code", `rate("100 Gb/s")`},
	{"now", "", Time, false, "the time; the difference of two is a duration", "now()"},
	{"duration", "text", Duration, false, "a duration from its text", `latency < duration("20ms")`},
	{"count", "list, condition", Number, false, "for how many elements the condition holds; without one, how many there are", `count(records, .MTU == "4096")`},
	{"len", "x", Number, false, "elements of a list or map, characters of a text", "len(records)"},
	{"all", "list, condition", Bool, false, "does the condition hold for each element?", "all(records, .SLID == 1)"},
	{"any", "list, condition", Bool, false, "does the condition hold for an element?", "any(records, .SLID == 1)"},
	{"none", "list, condition", Bool, false, "does the condition hold for no element?", "none(records, .DLID == 0)"},
	{"one", "list, condition", Bool, false, "does the condition hold for just one element?", "one(records, .SLID == 1)"},
	{"filter", "list, condition", ListOf, false, "the elements for which the condition holds", "filter(records, .SLID == 1)"},
	{"map", "list, expression", ListOf, false, "the expression's value for each element", "map(records, .DLID)"},
	{"int", "x", Number, false, "a whole number, from a text or another number", `int("4096")`},
	{"string", "x", Text, false, "the text of a value", "string(4)"},
}

// PortKeys are the keys of what port gives.
var PortKeys = []string{"name", "port", "lid", "guid", "node_guid", "gid"}

// ElementKeys are the keys of the elements of a loop over ports, switches, hosts or
// nodes: a port of each, and what its node is.
var ElementKeys = append(PortKeys[:len(PortKeys):len(PortKeys)], "type", "num_ports")

func keyList(keys []string) string { return strings.Join(keys, ", ") }
