package bench

import "testing"

func TestMetricsAreAtAPortOfThisHostOrAtAnAddress(t *testing.T) {
	for text, want := range map[string]string{"9464": "127.0.0.1:9464", "0": "127.0.0.1:0", "off": "", "10.0.0.7:1": "10.0.0.7:1", "[fd00::7]:9464": "[fd00::7]:9464"} {
		if got, err := parseTCP(text); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "65536", "-1", "host:9464", "10.0.0.7", "10.0.0.7:65536", ":9464", "on"} {
		if got, err := parseTCP(text); err == nil {
			t.Errorf("%q is read as %q", text, got)
		}
	}
}
