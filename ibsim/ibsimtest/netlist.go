package ibsimtest

import (
	"fmt"
	"strings"
)

// TwoLevel makes a netlist of leaf switches with hosts, and of spine switches that
// each leaf has one cable to. The hosts are H-0001 and so on, with the description
// "host 1", the leaves L-01, the spines S-01.
func TwoLevel(leaves, spines, hostsPerLeaf int) string {
	var b strings.Builder
	host := func(leaf, i int) string { return fmt.Sprintf("H-%04d", leaf*hostsPerLeaf+i+1) }
	for leaf := range leaves {
		fmt.Fprintf(&b, "switchguid=0x%x\nSwitch %d \"L-%02d\"\t\t# \"leaf %d\"\n", 0x200000+leaf, hostsPerLeaf+spines, leaf+1, leaf+1)
		for i := range hostsPerLeaf {
			fmt.Fprintf(&b, "[%d] \"%s\"[1]\n", i+1, host(leaf, i))
		}
		for spine := range spines {
			fmt.Fprintf(&b, "[%d] \"S-%02d\"[%d]\n", hostsPerLeaf+spine+1, spine+1, leaf+1)
		}
		b.WriteByte('\n')
	}
	for spine := range spines {
		fmt.Fprintf(&b, "switchguid=0x%x\nSwitch %d \"S-%02d\"\t\t# \"spine %d\"\n", 0x300000+spine, leaves, spine+1, spine+1)
		for leaf := range leaves {
			fmt.Fprintf(&b, "[%d] \"L-%02d\"[%d]\n", leaf+1, leaf+1, hostsPerLeaf+spine+1)
		}
		b.WriteByte('\n')
	}
	for leaf := range leaves {
		for i := range hostsPerLeaf {
			n := leaf*hostsPerLeaf + i + 1
			fmt.Fprintf(&b, "caguid=0x%x\nCa 1 \"%s\"\t\t# \"host %d\"\n[1] \"L-%02d\"[%d]\n\n", 0x100000+16*n, host(leaf, i), n, leaf+1, i+1)
		}
	}
	return b.String()
}
