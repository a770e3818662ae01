package sim

import (
	"fmt"
	"time"

	"github.com/ibsm/ibsm/mad"
	"github.com/ibsm/ibsm/sma"
	"github.com/ibsm/ibsm/topo"
)

// Reboot has a node start anew: its links go down and come up again in Init, and
// nothing is left of what a subnet manager has set. Its end ports have no LID and
// the default P_Key alone, a switch forwards nothing. Sweep is what a subnet manager
// does about it. Who has opened the node's ports keeps them.
func (f *Fabric) Reboot(t *topo.Node) error {
	return f.change(func(c *core) error {
		n := c.nodes[t]
		if n == nil {
			return fmt.Errorf("sim: reboot: node %v is not of this fabric", t)
		}
		for i := range n.ports {
			if i > 0 || n.IsSwitch() {
				n.ports[i].reboot(c.sub)
			}
		}
		n.notice = mad.SMPNotice{Type: mad.NoticeTypeEmpty}
		n.lft = make([]uint8, len(n.lft))
		for i := range n.lft {
			n.lft[i] = topo.NoRoute
		}
		return nil
	})
}

func (p *simPort) reboot(sub *topo.Subnet) {
	info := sma.BroughtUp(sub, p.Port)
	info.LID, info.LMC, info.MasterSMLID, info.MasterSMSL, info.SubnetTimeOut = 0, 0, 0, 0, 0
	p.LID, p.LMC, p.PKeys = 0, 0, nil
	if p.IsEnd() {
		info.GidPrefix = mad.DefaultGIDPrefix
		p.PKeys = []mad.PKey{mad.DefaultPKey} // IBA 10.9
	}
	p.info, p.leaseEnd = &info, time.Time{}
	if p.Num != 0 {
		p.takeDown(mad.PortPhysStatePolling)
	}
}

// Sweep does what a subnet manager does when it finds changed ports: LIDs, P_Keys,
// states and forwarding tables are again as the bring-up has made them, and so is
// all else that was set. Links that are cut or disabled stay down, and faults stay.
func (f *Fabric) Sweep() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.core.changes++
	for _, n := range f.core.nodes {
		n.lft = n.LFT
		for i := range n.ports {
			n.ports[i].asModelled()
		}
	}
}
