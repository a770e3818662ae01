package topo

import "github.com/ibsm/ibsm/mad"

// The words of fabric files for the widths, speeds and MTUs of links.
var (
	linkWidths = map[string]mad.LinkWidth{
		"1x": mad.LinkWidth1X, "2x": mad.LinkWidth2X, "4x": mad.LinkWidth4X, "8x": mad.LinkWidth8X, "12x": mad.LinkWidth12X,
	}
	linkSpeeds = map[string]mad.Speed{
		"SDR": mad.SpeedSDR, "DDR": mad.SpeedDDR, "QDR": mad.SpeedQDR, "FDR10": mad.SpeedFDR10, "FDR": mad.SpeedFDR,
		"EDR": mad.SpeedEDR, "HDR": mad.SpeedHDR, "NDR": mad.SpeedNDR, "XDR": mad.SpeedXDR,
	}
	linkMTUs = map[string]mad.MTU{
		"256": mad.MTU256, "512": mad.MTU512, "1024": mad.MTU1024, "2048": mad.MTU2048, "4096": mad.MTU4096,
	}
)

// word is the word that stands for a value.
func word[T comparable](words map[string]T, value T) string {
	for w, v := range words {
		if v == value {
			return w
		}
	}
	return ""
}
