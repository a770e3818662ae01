package script

// The words of for_each and parallel for what the fabric has.
var loopWords = []string{"ports", "switches", "hosts", "nodes"}

// Results that several kinds have.
var (
	latency = ResultVar{"latency", Duration, "how long it took"}
	failure = ResultVar{"error", Text, `why it could not be done; "" if it could`}
)

const maxUint32 = 1<<32 - 1

// versionsDoc says what classVersion gives.
const versionsDoc = "2 for SubnAdm, ComMgt and CC, else 1"

// GRHKeys are the keys of `grh` of send.
var GRHKeys = []Key{
	{Name: "gid", Type: TypeTemplate, Doc: "GID of the destination. That of `to`, if it is not given", Example: "fe80::2:c903:0:1234"},
	{Name: "flow_label", Type: TypeInt, Max: 1<<20 - 1, Default: "0", Doc: "flow label", Example: "1"},
	{Name: "hop_limit", Type: TypeInt, Max: 255, Default: "0", Doc: "hop limit", Example: "64"},
	{Name: "traffic_class", Type: TypeInt, Max: 255, Default: "0", Doc: "traffic class", Example: "0"},
	{Name: "gid_index", Type: TypeInt, Max: 255, Default: "0", Doc: "index of the own GID to send from", Example: "0"},
}

// AnswerKeys are the keys of an answer of serve.
var AnswerKeys = []Key{
	{Name: "when", Type: TypeExpr, Doc: "the answer is for requests for which this is true; `request` is the map of its header's and its attribute's fields", Example: "request.AttributeModifier == 1"},
	{Name: "attribute", Type: TypeAttribute, Doc: "the answer is for requests of this attribute, whose fields `set` names", Example: "ClassPortInfo"},
	{Name: "status", Type: TypeStatus, Default: "0", Doc: "status of the answer, by name or number", Example: "0x0008"},
	{Name: "set", Type: TypeFields, Doc: "fields of the attribute. The others are those of the request", Example: "{BaseVersion: 1}"},
	{Name: "data", Type: TypeHex, Doc: "bytes of the attribute, in place of `set`", Example: `"0102"`},
	{Name: "delay", Type: TypeDuration, Doc: "time before the answer is sent", Example: "100ms"},
	{Name: "silent", Type: TypeBool, Default: "false", Doc: "no answer", Example: "true"},
	{Name: "busy", Type: TypeInt, Max: 1_000_000, Default: "0", Doc: "the first so many requests are answered busy", Example: "2"},
}

// Kinds are the kinds of steps. A step has the key of exactly one.
var Kinds = []*Kind{
	{
		Name: "send", Doc: "Sends one MAD and waits for the answer.",
		Example: "{class: SubnAdm, method: GetTable, attribute: NodeRecord, to: sm}",
		new:     func() Body { return new(Send) },
		Keys: []Key{
			{Name: "class", Type: TypeClass, Doc: "management class, by name or number. Needed unless `raw` is given", Example: "SubnAdm"},
			{Name: "class_version", Type: TypeInt, Max: 255, Doc: "version of the class. " + versionsDoc, Example: "1"},
			{Name: "base_version", Type: TypeInt, Max: 255, Default: "1", Doc: "version of the MAD's header", Example: "1"},
			{Name: "method", Type: TypeMethod, Default: "Get", Doc: "method, by name or number", Example: "GetTable"},
			{Name: "attribute", Type: TypeAttribute, Doc: "attribute, by name (the IBA's, or one of the diags') or number. Needed unless `raw` is given", Example: "PortInfo"},
			{Name: "modifier", Type: TypeInt, Max: maxUint32, Default: "0", Doc: "attribute modifier", Example: "1"},
			{Name: "to", Type: TypeAddress, Default: "sm", Doc: "`sm`, or any address. A list is a directed route: YAML takes a route for one only in block form or quotes", Example: `"0,1,3"`},
			{Name: "set", Type: TypeFields, Doc: "fields of the attribute by name, reserved rows as in `header`; the others are 0. In SubnAdm the component mask follows from them", Example: "{LID: 5}"},
			{Name: "mask", Type: TypeMask, Doc: "component mask, in place of the one that follows from `set`: names of fields, or a number", Example: "[LID]"},
			{Name: "header", Type: TypeHeader, Doc: "any field of the MAD's headers (common, SMP, SA), reserved rows too: they are named by their byte, and the bit in it if that is not 0 (`Reserved18`, `Reserved37_4`)", Example: "{SM_Key: 1}"},
			{Name: "data", Type: TypeHex, Doc: "bytes of the attribute, from its start. `set` changes them", Example: `"0000ffff"`},
			{Name: "raw", Type: TypeHex, Doc: "bytes of the whole MAD, from its start. Every other key changes them", Example: `"0101010100000000"`},
			{Name: "rmpp", Type: TypeRMPP, Doc: "fields of the RMPP header, by hand", Example: "{RMPPVersion: 1, RMPPType: DATA, RMPPFlags: Active}"},
			{Name: "oui", Type: TypeInt, Max: 1<<24 - 1, Doc: "organisation of vendor classes from 0x30 to 0x4f", Example: "0x001405"},
			{Name: "tid", Type: TypeInt, Max: 1<<64 - 1, Doc: "transaction id; what carries the MAD takes the upper half for itself", Example: "0x1234"},
			{Name: "pkey", Type: TypeInt, Max: 0xffff, Default: "0xffff", Doc: "partition to send in, one of the port's", Example: "0x8001"},
			{Name: "qp", Type: TypeInt, Max: 1<<24 - 1, Doc: "queue pair to send to. 0 for SMPs, else 1", Example: "1"},
			{Name: "sl", Type: TypeInt, Max: 15, Doc: "service level. That of the SM for `sm`, else 0", Example: "0"},
			{Name: "grh", Type: TypeGRH, Default: "false", Doc: "send with a global route header", Example: "true"},
			{Name: "length", Type: TypeInt, Min: 1, Max: 256, Doc: "send only so many bytes of the MAD; on simulated fabrics only", Example: "64"},
			{Name: "timeout", Type: TypeDuration, Default: "1s", Doc: "time for an answer, at each try", Example: "200ms"},
			{Name: "retries", Type: TypeInt, Max: 1000, Default: "2", Doc: "further tries when no answer comes", Example: "0"},
			{Name: "long", Type: TypeBool, Doc: "an answer by RMPP may come. True for SubnAdm's GetTable, GetTraceTable and GetMulti", Example: "true"},
			{Name: "no_answer_ok", Type: TypeBool, Default: "false", Doc: "silence is no error; `answered` is false then", Example: "true"},
		},
		Results: []ResultVar{
			{"status", Text, `status of the answer: "ok", or its name, such as "busy" or "ERR_REQ_INVALID"; "" without an answer`},
			{"status_code", Number, "the same as a number; -1 without an answer"},
			{"answered", Bool, "an answer came"},
			failure,
			latency,
			{"answer", MapOf, "fields of the answer's headers"},
			{"record", MapOf, "fields of the answer's attribute, of the first record in SubnAdm"},
			{"records", ListOf, "the fields of each record"},
			{"count", Number, "number of records"},
			{"data", Text, "the attribute's bytes in hexadecimal"},
			{"from", MapOf, "who answered: " + keyList(fromKeys)},
		},
	},
	{
		Name: "for_each", Doc: "Runs steps for each element of a list, one after another.",
		Example: "{var: p, in: ports, steps: [{log: \"${p.name}\"}]}",
		new:     func() Body { return new(ForEach) },
		Keys: []Key{
			{Name: "var", Type: TypeName, Required: true, Doc: "variable that has the element, in `steps`", Example: "p"},
			{Name: "in", Type: TypeLoop, Required: true, Doc: "`ports`, `switches`, `hosts` or `nodes` of the fabric as the SA has them (each a map of " + keyList(ElementKeys) + "); a list; or an expression that gives one", Example: "[h1, h2]"},
			{Name: "max", Type: TypeInt, Min: 1, Max: MaxIterations, Default: "1000000", Doc: "it is an error if there are more", Example: "100"},
			{Name: "steps", Type: TypeSteps, Required: true, Doc: "what to do for each", Example: "[{log: \"${p}\"}]"},
		},
		Results: []ResultVar{{"iterations", Number, "how many elements there were"}},
	},
	{
		Name: "parallel", Doc: "Runs steps at the same time. With `var` and `in` it is a for_each of which several elements go on at a time. A variable that is set inside is gone afterwards.",
		Example: "{max: 8, var: h, in: hosts, steps: [{log: \"${h.name}\"}]}",
		new:     func() Body { return new(Parallel) },
		Keys: []Key{
			{Name: "max", Type: TypeInt, Min: 1, Max: MaxParallel, Default: "16", Doc: "so many at a time", Example: "8"},
			{Name: "var", Type: TypeName, Doc: "variable that has the element; then `steps` run in turn for each", Example: "h"},
			{Name: "in", Type: TypeLoop, Doc: "as in for_each", Example: "hosts"},
			{Name: "steps", Type: TypeSteps, Required: true, Doc: "what to do", Example: "[{log: one}, {log: two}]"},
		},
		Results: []ResultVar{{"iterations", Number, "how many elements, or steps, there were"}},
	},
	{
		Name: "repeat", Doc: "Runs steps again and again, so many times or until something is true.",
		Example: "{times: 3, every: 10ms, steps: [{log: again}]}",
		new:     func() Body { return new(Repeat) },
		Keys: []Key{
			{Name: "times", Type: TypeInt, Min: 1, Max: MaxIterations, Doc: "how often, at most if there is `until`. Needed, one of the two", Example: "3"},
			{Name: "until", Type: TypeExpr, Doc: "asked after each time; it sees what `steps` set. It is an error if `times` pass and it is still false", Example: "up"},
			{Name: "every", Type: TypeDuration, Default: "0s", Doc: "time from one beginning to the next", Example: "100ms"},
			{Name: "steps", Type: TypeSteps, Required: true, Doc: "what to do", Example: "[{log: again}]"},
		},
		Results: []ResultVar{{"iterations", Number, "how often it ran"}},
	},
	{
		Name: "retry", Doc: "Runs steps until all of them pass. Failures before that do not count.",
		Example: "{times: 5, delay: 10ms, steps: [{assert: [now() != nil]}]}",
		new:     func() Body { return new(Retry) },
		Keys: []Key{
			{Name: "times", Type: TypeInt, Min: 1, Max: MaxIterations, Default: "3", Doc: "tries", Example: "5"},
			{Name: "delay", Type: TypeDuration, Default: "1s", Doc: "time between two tries", Example: "100ms"},
			{Name: "steps", Type: TypeSteps, Required: true, Doc: "what to try", Example: "[{assert: [now() != nil]}]"},
		},
		Results: []ResultVar{{"iterations", Number, "how many tries it took"}},
	},
	{
		Name: "wait", Doc: "Lets time pass.", Example: "100ms",
		Short: TypeDuration, IsShort: true,
		new: func() Body { return new(Wait) },
		Keys: []Key{
			{Name: "for", Type: TypeDuration, Doc: "how long", Example: "100ms"},
			{Name: "notice", Type: TypeNotice, Doc: "not yet: notices come with the managed fabric", Example: "{trap: 128}"},
		},
	},
	{
		Name: "serve", Doc: "Answers requests of a class as a responder does: for a time, or while steps run.",
		Example: "{class: 0x32, oui: 0x001405, methods: [Get], answers: [{status: 0}], for: 10ms}",
		new:     func() Body { return new(Serve) },
		Keys: []Key{
			{Name: "class", Type: TypeClass, Required: true, Doc: "management class, by name or number", Example: "0x32"},
			{Name: "version", Type: TypeInt, Max: 255, Doc: "version of the class. " + versionsDoc, Example: "1"},
			{Name: "oui", Type: TypeInt, Max: 1<<24 - 1, Doc: "organisation of vendor classes from 0x30 to 0x4f", Example: "0x001405"},
			{Name: "methods", Type: TypeMethods, Required: true, Doc: "methods of requests to answer", Example: "[Get, Set]"},
			{Name: "answers", Type: TypeAnswers, Doc: "the first that fits a request is given; without one that fits the answer is status 0x000c, unsupported", Example: "[{status: 0}]"},
			{Name: "for", Type: TypeDuration, Doc: "serve so long, if there are no steps", Example: "1s"},
			{Name: "steps", Type: TypeSteps, Doc: "serve while these run", Example: "[{wait: 10ms}]"},
		},
		Results: []ResultVar{
			{"requests", ListOf, "the last 1000 requests, as `request` of `when` has them"},
			{"count", Number, "how many there were"},
		},
	},
	{
		Name: "connect", Doc: "Connects by the RDMA CM, over a path of the SA, and disconnects.",
		Example: `{to: "ip:10.0.0.8", service: 7471, private_data: hello}`,
		new:     func() Body { return new(Connect) },
		Keys: []Key{
			{Name: "to", Type: TypeTemplate, Doc: "address of the peer, as in `ibsm connect`; needed unless `path` is a record", Example: "h8"},
			{Name: "path", Type: TypePath, Default: "sa", Doc: "`sa`: the path that the SA gives; `kernel`: the RDMA CM asks itself; or a PathRecord", Example: `"${path}"`},
			{Name: "service", Type: TypeTemplate, Required: true, Doc: "service of the peer: a port number, or in port space ib a service id", Example: "7471"},
			{Name: "port_space", Type: TypeWord, Words: portSpaces, Default: "tcp", Doc: "port space", Example: "tcp"},
			{Name: "private_data", Type: TypeTemplate, Doc: "what to send in the REQ, as text or `hex:00ff`", Example: "hello"},
			{Name: "source", Type: TypeTemplate, Doc: "own IP address to connect from. The kernel chooses, if it is not given", Example: "10.0.0.1"},
			{Name: "pkey", Type: TypeInt, Max: 0xffff, Doc: "partition. That of `path` if it is a record, else the port's first", Example: "0x8001"},
			{Name: "qpn", Type: TypeInt, Max: 1<<24 - 1, Doc: "number of the queue pair to announce", Example: "0x123"},
			{Name: "hold", Type: TypeDuration, Default: "0s", Doc: "keep the connection up for so long", Example: "100ms"},
		},
		Results: []ResultVar{
			{"state", Text, "established or failed"},
			failure,
			latency,
			{"reject", Text, `why the peer rejected; "" if it did not`},
			{"reject_code", Number, "the same as a number; 0 if it did not"},
			{"route", MapOf, "the path in use, as the RDMA CM reports it (QUERY_ROUTE): a PathRecord"},
			{"private_data", Text, "what the peer sent in its answer, in hexadecimal"},
			{"local_qpn", Number, "own queue pair"},
			{"remote_qpn", Number, "the peer's queue pair"},
		},
	},
	{
		Name: "listen", Doc: "Takes connections by the RDMA CM: so many, or while steps run.",
		Example: "{service: 18515, steps: [{wait: 10ms}]}",
		new:     func() Body { return new(Listen) },
		Keys: []Key{
			{Name: "address", Type: TypeTemplate, Doc: "own IP address. All, if it is not given", Example: "10.0.0.1"},
			{Name: "service", Type: TypeTemplate, Required: true, Doc: "service: a port number, or in port space ib a service id", Example: "18515"},
			{Name: "port_space", Type: TypeWord, Words: portSpaces, Default: "tcp", Doc: "port space", Example: "tcp"},
			{Name: "private_data", Type: TypeTemplate, Doc: "what to send in the answer, as text or `hex:00ff`. What came in the request, if it is not given", Example: "hello"},
			{Name: "qpn", Type: TypeInt, Max: 1<<24 - 1, Doc: "number of the queue pair to announce", Example: "0x123"},
			{Name: "reject", Type: TypeBool, Default: "false", Doc: "reject each request", Example: "true"},
			{Name: "count", Type: TypeInt, Min: 1, Max: MaxIterations, Doc: "end after so many requests. Needed, unless there are steps", Example: "1"},
			{Name: "steps", Type: TypeSteps, Doc: "listen while these run", Example: "[{wait: 10ms}]"},
		},
		Results: []ResultVar{
			{"requests", ListOf, "the last 1000 requests, each a map of " + keyList(requestKeys)},
			{"count", Number, "how many there were"},
		},
	},
	{
		Name: "fault", Doc: "Makes a simulated fabric misbehave, or stop it. It stays so until another step changes it.",
		Example: `{link: "h1[1]", down: true}`,
		new:     func() Body { return new(Fault) },
		Keys: []Key{
			{Name: "link", Type: TypeTemplate, Doc: "port at one end of the link, as `node[port]`, or `all`", Example: `"h1[1]"`},
			{Name: "down", Type: TypeBool, Doc: "cut the link", Example: "true"},
			{Name: "up", Type: TypeBool, Doc: "put it back", Example: "true"},
			{Name: "loss", Type: TypeFraction, Doc: "share of MADs that are lost", Example: "0.1"},
			{Name: "delay", Type: TypeDuration, Doc: "how late each MAD is", Example: "5ms"},
			{Name: "duplicate", Type: TypeFraction, Doc: "share of MADs that come twice", Example: "0.1"},
			{Name: "reorder", Type: TypeFraction, Doc: "share of MADs that let later ones pass", Example: "0.1"},
			{Name: "reboot", Type: TypeTemplate, Doc: "node that starts anew", Example: "h8"},
			{Name: "sweep", Type: TypeBool, Doc: "set up all nodes as the bring-up had: what a subnet manager does after a reboot", Example: "true"},
			{Name: "sma", Type: TypeTemplate, Doc: "named fault of the SM agents; docs/faults.md lists them", Example: "portinfo-modifier-ignored"},
			{Name: "sa", Type: TypeTemplate, Doc: "named fault of the SA; docs/faults.md lists them", Example: "record-lost"},
			{Name: "off", Type: TypeBool, Default: "false", Doc: "end the named fault", Example: "true"},
		},
	},
	{
		Name: "assert", Doc: "Fails unless all expressions are true.", Example: "[len(paths) > 0]",
		Short: TypeExprs, IsShort: true,
		new: func() Body { return new(Assert) },
	},
	{
		Name: "set_var", Doc: "Gives variables values: a value, or `${expression}`.", Example: `{n: 4, src: "${hosts[0]}"}`,
		Short: TypeValues, IsShort: true,
		new: func() Body { return new(SetVar) },
	},
	{
		Name: "include", Doc: "Runs the steps of another file, then its `finally`. The file sees its own `vars` and `params` and nothing else.",
		Example: "{file: bounce.yaml, with: {host: h1}}",
		new:     func() Body { return new(Include) },
		Keys: []Key{
			{Name: "file", Type: TypeText, Required: true, Doc: "file, seen from the folder of this one", Example: "bounce.yaml"},
			{Name: "with", Type: TypeValues, Doc: "values for the `params` of that file", Example: "{host: h1}"},
		},
		Results: []ResultVar{{"result", MapOf, "the variables of that file, as they are at its end"}},
	},
	{
		Name: "log", Doc: "Puts a line into the report.", Example: `"path: ${path.DLID}"`,
		Short: TypeTemplate, IsShort: true,
		new: func() Body { return new(Log) },
	},
}

// fromKeys are the keys of `from`.
var fromKeys = []string{"lid", "gid"}

// requestKeys are the keys of the elements of `requests` of listen.
var requestKeys = []string{"state", "error", "peer", "private_data", "local_qpn", "remote_qpn", "route"}

var portSpaces = []string{"tcp", "udp", "ib", "ipoib"}
