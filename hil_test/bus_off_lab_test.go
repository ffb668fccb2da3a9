package hiltest

import (
	"strings"
	"testing"
	"time"
)

// A controller says in an error frame that it is off the bus; vcan hands on one that
// is written to it as if a driver had made it. The safe values are on the bus
// then, w1 = 0 among them, or the run goes on as if nothing had been.
func TestLabBusOffDoesWhatTheBenchSays(t *testing.T) {
	if !inLab(t, "candump", "cansend") {
		return
	}
	for action, safe := range map[string]bool{"continue": false, "stop": true, "safe": true} {
		t.Run(action, func(t *testing.T) {
			dump := candump(t, "vcan0")
			b := runOn(t, "vcan0", 4*time.Second, []edit{{"bus_off: continue", "bus_off: " + action}}, "-besteffort")
			b.await(" s best effort", patience)
			off := start(t, "cansend", "vcan0", "20000040#0000000000000000") // CAN_ERR_FLAG | CAN_ERR_BUSOFF
			if code := off.wait(10 * time.Second); code != 0 {
				t.Fatalf("cansend: exit %d, %s", code, &off.err)
			}
			code := b.wait(30 * time.Second)
			if want := map[bool]int{true: 1, false: 0}[safe]; code != want {
				t.Errorf("exit %d, want %d\n%s%s", code, want, &b.out, &b.err)
			}
			if told := strings.Contains(b.err.String(), "a bus was down or off"); told != safe {
				t.Errorf("stderr: %q", b.err.String())
			}
			byID, _ := dumped(t, dump)
			speeds := byID["200"]
			if speeds == nil || len(speeds.data) < 20 { // of a second that a busy host may have shortened
				t.Fatalf("Speeds on the bus %+v; want 20\n%s%s", speeds, &b.out, &b.err)
			}
			last := speeds.data[len(speeds.data)-1]
			if zero := last[0] == 0 && last[1] == 0; zero != safe {
				t.Errorf("the last Speeds are % X; want w1 = 0: %t", last, safe)
			}
		})
	}
}
