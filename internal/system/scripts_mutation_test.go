package system

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	scripts "github.com/ibsm/ibsm/script"
)

// mutation is a check, which is a step of a script, and the named fault that makes
// it fail. From whole on, the fault is on from the first check of the script and not
// only in this one, since that is about what others have done before.
type mutation struct {
	script, step, fault string
	whole               bool
}

// mutations has every check of sa-basics and sma-basics, and what the other scripts
// would notice.
var mutations = []mutation{
	// sa-basics.
	{"sa-basics", "the transaction id comes back", "sa:tid-wrong", false},
	{"sa-basics", "the attribute comes back", "sa:attribute-wrong", false},
	{"sa-basics", "the attribute modifier comes back", "sa:modifier-wrong", false},
	{"sa-basics", "the component mask comes back", "sa:mask-cleared", false},
	{"sa-basics", "an answer has the versions of the class", "sa:response-class-version", false},
	{"sa-basics", "an answer has no SM_Key", "sa:sm-key-shown", false},
	{"sa-basics", "to a wrong SM_Key there is no answer", "sa:sm-key-unchecked", false},
	{"sa-basics", "AttributeOffset is the size of the record in units of 8 bytes", "sa:offset-in-bytes", false},
	{"sa-basics", "another class version is refused", "sa:bad-version-ok", false},
	{"sa-basics", "an unsupported attribute is told", "sa:unknown-attribute-silent", false},
	{"sa-basics", "an unsupported method is told", "sa:unknown-method-ok", false},
	{"sa-basics", "a record that cannot be set says so", "sa:unknown-attribute-ok", false},
	{"sa-basics", "a LID selects", "sa:node-lid-ignored", false},
	{"sa-basics", "a GUID selects", "sa:node-port-guid-ignored", false},
	{"sa-basics", "a GUID of 8 bytes selects", "sa:node-guid-ignored", false},
	{"sa-basics", "a text selects", "sa:node-description-ignored", false},
	{"sa-basics", "a field of a few bits selects", "sa:port-state-ignored", false},
	{"sa-basics", "a GID selects", "sa:path-dgid-ignored", false},
	{"sa-basics", "all components must agree", "sa:node-type-ignored", false},
	{"sa-basics", "a component whose bit is not set does not count", "sa:mask-everything", false},
	{"sa-basics", "a component of value 0 counts, too", "sa:node-num-ports-ignored", false},
	{"sa-basics", "a mask of bits asks for those and allows more", "sa:port-capmask-exact", false},
	{"sa-basics", "bits that a port does not have are asked for in vain", "sa:port-capmask-ignored", false},
	{"sa-basics", "no component and one answer are too many records", "sa:get-first-of-many", false},
	{"sa-basics", "a Get of what is not there is no record", "sa:no-records-ok", false},
	{"sa-basics", "the LIDs of a path are those of its ends", "sa:path-slid-wrong", false},
	{"sa-basics", "a path by LIDs has the GIDs of its ends", "sa:path-dlid-ignored", false},
	{"sa-basics", "an MTU greater than", "sa:mtu-greater-as-exactly", false},
	{"sa-basics", "no MTU is greater than 4096", "sa:path-mtu-ignored", false},
	{"sa-basics", "an MTU less than", "sa:mtu-less-as-exactly", false},
	{"sa-basics", "exactly an MTU", "sa:mtu-exactly-as-largest", false},
	{"sa-basics", "the largest MTU", "sa:mtu-largest-as-exactly", false},
	{"sa-basics", "an MTU without its selector does not count", "sa:selector-not-needed", false},
	{"sa-basics", "an MTU that does not exist is refused", "sa:invalid-ok", false},
	{"sa-basics", "a rate greater than", "sa:rate-greater-as-exactly", false},
	{"sa-basics", "no rate is greater than that of the path", "sa:no-records-as-invalid", false},
	{"sa-basics", "a rate less than", "sa:rate-less-as-exactly", false},
	{"sa-basics", "exactly a rate", "sa:path-rate-wrong", false},
	{"sa-basics", "a rate that the path does not have is not exactly it", "sa:rate-exactly-as-largest", false},
	{"sa-basics", "the largest rate", "sa:rate-largest-as-exactly", false},
	{"sa-basics", "a rate that does not exist is refused", "sa:path-rate-ignored", false},
	{"sa-basics", "a packet life time less than", "sa:life-less-as-greater", false},
	{"sa-basics", "no packet life time is greater than that of the path", "sa:life-greater-as-exactly", false},
	{"sa-basics", "a life time longer than that of the path is not exactly it", "sa:life-exactly-as-smallest", false},
	{"sa-basics", "a life time is not what a path can be told to have", "sa:path-life-ignored", false},
	{"sa-basics", "bounds are granted exactly", "sa:path-selectors-wrong", false},
	{"sa-basics", "a path leads back if it is asked to", "sa:path-irreversible", false},
	{"sa-basics", "a path in a partition that both ends are in", "sa:path-pkey-wrong", false},
	{"sa-basics", "no path in a partition that no end is in", "sa:path-pkey-ignored", false},
	{"sa-basics", "what a route header has comes back as it was asked for", "sa:path-tclass-ignored", false},
	{"sa-basics", "a service level that is asked for is granted", "sa:path-sl-ignored", false},
	{"sa-basics", "one half of a service id is too little", "sa:insufficient-as-invalid", false},
	{"sa-basics", "a path to oneself takes no time", "sa:path-life-wrong", false},
	{"sa-basics", "a GID that nobody has is refused", "sa:invalid-gid-as-no-records", false},
	{"sa-basics", "a GID and a LID of different ports are refused", "sa:path-slid-ignored", false},
	{"sa-basics", "a path to a multicast group", "sa:path-swapped", false},
	{"sa-basics", "a GetTable is answered by a GetTableResp", "sa:table-as-get", false},
	{"sa-basics", "no component is all records", "sa:table-as-one-mad", false},
	{"sa-basics", "a table has the records that agree and no others", "sa:mask-ignored", false},
	{"sa-basics", "an empty table is no error", "sa:empty-table-no-records", false},
	{"sa-basics", "each record of a table is there once", "sa:record-twice", false},
	{"sa-basics", "between two records there are zeros", "sa:padding", false},
	{"sa-basics", "the paths from a port to all others", "sa:path-sgid-ignored", false},
	{"sa-basics", "no segment is lost", "sa:rmpp-segment-lost", false},
	{"sa-basics", "a segment is of RMPP version 1 and type DATA", "sa:rmpp-version", false},
	{"sa-basics", "the first segment of several has number 1 and the flag First", "sa:rmpp-segment-number", false},
	{"sa-basics", "the first segment tells the length of all, or nothing", "sa:rmpp-total-wrong", false},
	{"sa-basics", "the last segment has the flag Last", "sa:rmpp-last-flag", false},
	{"sa-basics", "the last segment tells its length", "sa:rmpp-payload-length", false},
	{"sa-basics", "an empty table is one segment without data", "sa:empty-table-one-record", false},
	{"sa-basics", "ClassPortInfo has the versions of the class", "sa:class-versions-wrong", false},
	{"sa-basics", "ClassPortInfo tells what the SA can do", "sa:class-capabilities-wrong", false},
	{"sa-basics", "the SA is asked where it is", "sa:class-redirects", false},
	{"sa-basics", "a NodeRecord has the name of its node", "sa:node-description-empty", false},
	{"sa-basics", "a NodeRecord has the NodeInfo of its node", "sa:node-guid-wrong", false},
	{"sa-basics", "a PortInfoRecord names its port", "sa:port-num-ignored", false},
	{"sa-basics", "a PortInfoRecord has the PortInfo of its port", "sa:port-state-wrong", false},
	{"sa-basics", "a PortInfoRecord shows no M_Key to strangers", "sa:portinfo-mkey-shown", false},
	{"sa-basics", "a SwitchInfoRecord is of a switch", "sa:switchinfo-top-wrong", false},
	{"sa-basics", "a host has no SwitchInfoRecord", "sa:switch-lid-ignored", false},
	{"sa-basics", "a LinkRecord from the port of a host", "sa:link-from-ignored", false},
	{"sa-basics", "a LinkRecord is found by its far end", "sa:link-to-ignored", false},
	{"sa-basics", "a link has a record from its other end, too", "sa:link-half", false},
	{"sa-basics", "each link has two records", "sa:record-lost", false},
	{"sa-basics", "a forwarding table as the SA has it", "sa:lft-shifted-record", false},
	{"sa-basics", "a host has no forwarding table", "sa:lft-lid-ignored", false},
	{"sa-basics", "a block of the forwarding table that is not in use is no record", "sa:lft-block-ignored", false},
	{"sa-basics", "P_Keys are for those who know the SM_Key", "sa:everyone-trusted", false},
	{"sa-basics", "the P_Keys of a port", "sa:pkey-lid-ignored", false},
	{"sa-basics", "SMInfoRecord names the master", "sa:sminfo-state-wrong", false},
	{"sa-basics", "where no SM is there is no SMInfoRecord", "sa:sminfo-lid-ignored", false},
	{"sa-basics", "SMInfoRecord shows no SM_Key to strangers", "sa:sminfo-key-shown", false},
	{"sa-basics", "the first GUID of a port is its port GUID", "sa:guid-0-wrong", false},
	{"sa-basics", "the lanes from a port of a switch to another", "sa:sltovl-ports-ignored", false},
	{"sa-basics", "a part of the arbitration table of a port", "sa:vlarb-block-ignored", false},
	{"sa-basics", "a service is registered", "sa:service-data-lost", true},
	{"sa-basics", "a service is found by its name", "sa:service-set-forgotten", true},
	{"sa-basics", "a service is not found by another name", "sa:service-name-ignored", false},
	{"sa-basics", "a service is not found by another id", "sa:service-id-ignored", false},
	{"sa-basics", "the lease of a service runs", "sa:service-lease", true},
	{"sa-basics", "a service without an id is refused", "sa:invalid-ok", true},
	{"sa-basics", "a service is taken away", "sa:delete-response-method", false},
	{"sa-basics", "a service that was taken away is gone", "sa:service-delete-forgotten", true},
	{"sa-basics", "a service can be taken away once", "sa:no-records-as-invalid", false},
	{"sa-basics", "to join takes at least MGID, PortGID and JoinState", "sa:insufficient-as-invalid", true},
	{"sa-basics", "to make a group takes more", "sa:insufficient-as-invalid", true},
	{"sa-basics", "a port of another subnet cannot join", "sa:invalid-gid-as-no-records", true},
	{"sa-basics", "a group is made by who joins it", "sa:group-mlid-wrong", true},
	{"sa-basics", "who joins is told what the group has in common", "sa:group-qkey-wrong", true},
	{"sa-basics", "who joins with another Q_Key is refused", "sa:join-qkey-ignored", false},
	{"sa-basics", "a group is found by its MGID", "sa:group-mgid-ignored", false},
	{"sa-basics", "a group is found by its MLID", "sa:group-mlid-ignored", false},
	{"sa-basics", "a group is not found in another partition", "sa:group-pkey-ignored", false},
	{"sa-basics", "strangers are not told who is a member", "sa:everyone-trusted", false},
	{"sa-basics", "who knows the SM_Key is told who is a member", "sa:nobody-trusted", false},
	{"sa-basics", "a path to the group", "sa:path-dlid-wrong", false},
	{"sa-basics", "only a member can leave", "sa:leave-forgotten", true},
	{"sa-basics", "a member leaves", "sa:join-forgotten", true},
	{"sa-basics", "a group ends with its last full member", "sa:leave-forgotten", true},
	{"sa-basics", "a group that is gone cannot be left", "sa:invalid-as-no-records", true},
	{"sa-basics", "who is busy says so", "sa:busy-as-no-resources", false},
	{"sa-basics", "and answers later", "sa:busy", false},
	// sma-basics.
	{"sma-basics", "a Get is answered by a GetResp", "sma:response-method-get", false},
	{"sma-basics", "the status of what goes well is 0", "sma:status-reserved", false},
	{"sma-basics", "the transaction id comes back", "sma:tid-changed", false},
	{"sma-basics", "the attribute comes back", "sma:attribute-changed", false},
	{"sma-basics", "the attribute modifier comes back", "sma:modifier-changed", false},
	{"sma-basics", "an answer has the versions of the class", "sma:class-version-wrong", false},
	{"sma-basics", "reserved bytes of a LID-routed SMP are 0", "sma:reserved-header", false},
	{"sma-basics", "reserved bytes of a directed-route SMP are 0", "sma:reserved-header", false},
	{"sma-basics", "behind a short attribute there are zeros", "sma:reserved-data", false},
	{"sma-basics", "reserved bits of PortInfo are 0", "sma:reserved-portinfo", false},
	{"sma-basics", "another base version is not served", "sma:base-version-unchecked", false},
	{"sma-basics", "another class version is refused", "sma:class-version-unchecked", false},
	{"sma-basics", "an unsupported method is told", "sma:method-silent", false},
	{"sma-basics", "an unsupported attribute is told", "sma:attribute-silent", false},
	{"sma-basics", "no hop leads to the own node", "sma:own-node-silent", false},
	{"sma-basics", "an answer says that it is on its way back", "sma:direction-bit", false},
	{"sma-basics", "the hop pointer of an answer ends at 0", "sma:hop-pointer", false},
	{"sma-basics", "the hop count is that of the request", "sma:hop-count", false},
	{"sma-basics", "the initial path comes back", "sma:initial-path", false},
	{"sma-basics", "the return path names the ports that the request came by", "sma:return-path", false},
	{"sma-basics", "both ends of a directed route have the permissive LID", "sma:dr-lids", false},
	{"sma-basics", "a request starts with a hop pointer of 0", "sma:hop-pointer-unchecked", false},
	{"sma-basics", "a port without a cable leads nowhere", "sma:dead-end-answered", false},
	{"sma-basics", "a port that the switch does not have leads nowhere", "sma:dead-end-answered", false},
	{"sma-basics", "a host passes nothing on", "sma:adapter-passes-on", false},
	{"sma-basics", "a directed route may begin at a LID", "sma:lid-start-silent", false},
	{"sma-basics", "by LID a node says the same", "sma:nodeinfo-num-ports", false},
	{"sma-basics", "an answer comes from the LID that was asked", "sma:answer-lid", false},
	{"sma-basics", "NodeInfo has the versions of the class", "sma:nodeinfo-versions", false},
	{"sma-basics", "NodeInfo tells switches from others", "sma:nodeinfo-type", false},
	{"sma-basics", "LocalPortNum of NodeInfo is the port that the request came by", "sma:nodeinfo-local-port", false},
	{"sma-basics", "a node has GUIDs", "sma:nodeinfo-node-guid", false},
	{"sma-basics", "a port has room for P_Keys", "sma:nodeinfo-partition-cap", false},
	{"sma-basics", "NodeDescription is text", "sma:nodedescription-cut", false},
	{"sma-basics", "LocalPortNum of PortInfo is the port that the request came by", "sma:portinfo-local-port", false},
	{"sma-basics", "PortInfo 0 of a switch is that of its own port", "sma:portinfo-port-0-as-1", false},
	{"sma-basics", "PortInfo of a port is that of no other", "sma:portinfo-modifier-ignored", false},
	{"sma-basics", "PortInfo of a port that there is not is refused", "sma:portinfo-any-port", false},
	{"sma-basics", "the port of a host is Active and its link is up", "sma:portinfo-physical-state", false},
	{"sma-basics", "a port answers at its LID", "sma:nodeinfo-port-guid", false},
	{"sma-basics", "the SM is at a unicast LID", "sma:portinfo-sm-lid", false},
	{"sma-basics", "a port has the prefix of its subnet", "sma:portinfo-prefix", false},
	{"sma-basics", "the LMC lowest bits of a LID are 0", "sma:portinfo-lmc", false},
	{"sma-basics", "NeighborMTU is at most MTUCap", "sma:portinfo-mtu", false},
	{"sma-basics", "the active width is one of those supported", "sma:portinfo-width", false},
	{"sma-basics", "a link that is up has a speed", "sma:portinfo-speed", false},
	{"sma-basics", "OperationalVLs is at most VLCap", "sma:portinfo-vls", false},
	{"sma-basics", "the port of the SM says that an SM is there", "sma:portinfo-is-sm", false},
	{"sma-basics", "a port has room for GUIDs", "sma:portinfo-guid-cap", false},
	{"sma-basics", "the cables of a switch have no LID", "sma:switch-port-lid", false},
	{"sma-basics", "the first GUID of a port is its port GUID", "sma:guidinfo-guid-0", false},
	{"sma-basics", "a block of GUIDs that there is not is refused", "sma:guidinfo-any-block", false},
	{"sma-basics", "a port is in a partition", "sma:pkeytable-empty", false},
	{"sma-basics", "a block of P_Keys that there is not is refused", "sma:pkeytable-any-block", false},
	{"sma-basics", "a host has no SwitchInfo", "sma:switchinfo-anywhere", false},
	{"sma-basics", "the forwarding table has room for its top", "sma:switchinfo-top", false},
	{"sma-basics", "a host has no forwarding table", "sma:lft-anywhere", false},
	{"sma-basics", "a block of the forwarding table that there is not is refused", "sma:lft-any-block", false},
	{"sma-basics", "the forwarding table leads to the host", "sma:lft-shifted", false},
	{"sma-basics", "a block of the multicast table that there is not is refused", "sma:mft-any-block", false},
	{"sma-basics", "service levels of a port that there is not are refused", "sma:sltovl-any-port", false},
	{"sma-basics", "a part of the arbitration table that there is not is refused", "sma:vlarb-any-block", false},
	{"sma-basics", "lane 15 is not arbitrated", "sma:vlarb-lane-15", false},
	{"sma-basics", "SMInfo names the port of the SM", "sma:sminfo-guid", false},
	{"sma-basics", "the SM is the master", "sma:sminfo-state", false},
	{"sma-basics", "SMInfo shows no SM_Key to who is no SM", "sma:sminfo-key", false},
	{"sma-basics", "where no SM is there is no SMInfo", "sma:sminfo-anywhere", false},
	{"sma-basics", "a queue of notices says when it is empty", "sma:notice-empty", false},
	{"sma-basics", "a Set is answered by a GetResp", "sma:response-method-set", true},
	{"sma-basics", "the answer to a Set shows what was set", "sma:set-ignored", true},
	{"sma-basics", "a Set stays", "sma:set-forgotten", true},
	{"sma-basics", "a state that nobody can order is refused", "sma:set-invalid-ok", true},
	{"sma-basics", "NodeInfo cannot be set", "sma:attribute-as-method", false},
	{"sma-basics", "who does not have the M_Key does not see it", "sma:mkey-shown", false},
	{"sma-basics", "who has the M_Key sees it", "sma:mkey-hidden", false},
	{"sma-basics", "a Set without the M_Key is not done and not answered", "sma:mkey-unchecked", true},

	// The others.
	{"quickstart", "the path to dst", "sa:path-dlid-wrong", true},
	{"port-sweep", "all links are up", "sma:portinfo-state", true},
	{"port-bounce", "the link is down", "sma:set-physical-ignored", true},
	{"port-bounce", "nothing goes to Active but by Armed", "sma:set-skips-armed", true},
	{"port-bounce", "the port is as it was", "sma:set-armed-ignored", true},
	{"pkey-audit", "as the SA has it", "sma:pkeytable-empty", true},
	{"path-to-connect", "path", "sa:path-dlid-wrong", true},
}

// isBasic tells the scripts that are made of checks.
func isBasic(script string) bool { return strings.HasSuffix(script, "-basics") }

// toggle switches a fault of the table.
func toggle(t *testing.T, faults scripts.FaultInjector, name string, on bool) {
	t.Helper()
	do := faults.SMA
	if rest, ok := strings.CutPrefix(name, "sa:"); ok {
		do, name = faults.SA, rest
	}
	if err := do(strings.TrimPrefix(name, "sma:"), on); err != nil {
		t.Error(err)
	}
}

// mustFail tells of a check that did not notice: it passed, or did not get so far as
// to expect something.
func mustFail(t *testing.T, steps map[string]*scripts.Event, step, fault string) {
	t.Helper()
	switch e := steps[step]; {
	case e == nil:
		t.Errorf("%s: there is no such step", step)
	case e.Verdict != scripts.Failed:
		t.Errorf("%s: with the fault %s it %v", step, fault, e.Verdict)
		if e.Failure != nil {
			t.Log(why(e.Failure))
		}
	}
}

// Each check fails when its own fault is on. Without faults all pass (TestScripts).
func TestScriptsMutations(t *testing.T) {
	shared := make(map[string]map[string]string) // script, step: fault
	alone := make(map[[2]string][]string)        // script and fault: steps
	checks := make(map[string]map[string]bool)   // script, step
	for _, m := range mutations {
		if checks[m.script] == nil {
			checks[m.script], shared[m.script] = make(map[string]bool), make(map[string]string)
		}
		checks[m.script][m.step] = true
		if m.whole {
			key := [2]string{m.script, m.fault}
			alone[key] = append(alone[key], m.step)
		} else {
			shared[m.script][m.step] = m.fault
		}
	}
	for script, least := range map[string]int{"sa-basics": 40, "sma-basics": 30} {
		found := make(map[string]bool)
		for _, s := range load(t, script, nil).Steps {
			if s.Section != "" {
				found[s.Name] = true
			}
		}
		if !maps.Equal(found, checks[script]) || len(found) < least {
			t.Errorf("%s has %d checks, the table %d", script, len(found), len(checks[script]))
			for name := range found {
				if !checks[script][name] {
					t.Logf("not in the table: %s", name)
				}
			}
		}
	}

	// One run for all that only ask: each has its own fault while it lasts.
	for script, faults := range shared {
		if len(faults) == 0 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			env := onStage(t, "sim:demo")
			_, steps := perform(t, script, env, nil, func(e *scripts.Event) {
				if fault, ok := faults[e.Name]; ok && e.Kind <= scripts.EventEnd {
					toggle(t, env.Faults, fault, e.Kind == scripts.EventBegin)
				}
			})
			for step, fault := range faults {
				mustFail(t, steps, step, fault)
			}
		})
	}
	for key, failing := range alone {
		synctest.Test(t, func(t *testing.T) {
			env := onStage(t, "sim:demo")
			on := false
			_, steps := perform(t, key[0], env, nil, func(e *scripts.Event) {
				if !on && e.Kind == scripts.EventBegin && (e.Section != "" || !isBasic(key[0])) {
					on = true
					toggle(t, env.Faults, key[1], true)
				}
			})
			for _, step := range failing {
				mustFail(t, steps, step, key[1])
			}
		})
	}
}
