package bench

import (
	"strings"
	"testing"
)

func TestPageIsAPortOrOff(t *testing.T) {
	for text, want := range map[string]string{"8040": "", "0": "", "off": "", "65535": "", "65536": "65536", "on": "on", "-1": "-1", "08040": "08040"} {
		port, err := ParsePage(text)
		switch {
		case want == "" && (err != nil || port != text):
			t.Errorf("%s: %q, %v", text, port, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), `"`+want+`" is neither a TCP port, 0 to 65535, nor off`)):
			t.Errorf("%s: %v", text, err)
		}
	}
}
