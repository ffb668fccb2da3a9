package bench

import (
	"strings"
	"testing"
)

func TestPageIsAPortOrOff(t *testing.T) {
	for _, text := range []string{"8040", "0", "off", "65535"} {
		if port, err := ParsePage(text); err != nil || port != text {
			t.Errorf("%s: %q, %v", text, port, err)
		}
	}
	for _, text := range []string{"65536", "on", "-1", "08040", ""} {
		_, err := ParsePage(text)
		if want := `"` + text + `" is neither a TCP port, 0 to 65535, nor off`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
