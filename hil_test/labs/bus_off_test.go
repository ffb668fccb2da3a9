package labs

import (
	"strings"
	"syscall"
	"testing"

	"lockstep/hil_test/lab"
)

// A controller says in an error frame that it is off the bus; vcan hands on one that
// is written to it as if a driver had made it. The safe values are on the bus
// then, w1 = 0 among them, or the run goes on as if nothing had been.
func TestLabBusOffDoesWhatTheBenchSays(t *testing.T) {
	if !lab.InVCAN(t, "candump", "cansend") {
		return
	}
	for action, safe := range map[string]bool{"continue": false, "stop": true, "safe": true} {
		t.Run(action, func(t *testing.T) {
			dump := lab.StartCandump(t, "vcan0")
			b := lab.StartDemoOn(t, "vcan0", lab.UntilStopped, []lab.Edit{{"bus_off: continue", "bus_off: " + action}}, "-besteffort")
			b.AwaitTicking()
			off := lab.Start(t, "cansend", "vcan0", "20000040#0000000000000000") // CAN_ERR_FLAG | CAN_ERR_BUSOFF
			if code := off.Wait(); code != 0 {
				t.Fatalf("cansend: exit %d, %s", code, &off.Err)
			}
			if action != "stop" {
				b.AwaitTicks(100)
				b.Signal(syscall.SIGINT)
			}
			code := b.Wait()
			if want := map[bool]int{true: 1, false: 0}[safe]; code != want {
				t.Errorf("exit %d, want %d\n%s%s", code, want, &b.Out, &b.Err)
			}
			if told := strings.Count(b.Err.String(), "\n") == 1; told != safe {
				t.Errorf("stderr: %q", b.Err.String())
			}
			byID, _ := lab.EndCandump(t, dump)
			speeds := byID["200"]
			if speeds == nil || len(speeds.Data) < 20 { // of a second that a busy host may have shortened
				t.Fatalf("Speeds on the bus %+v; want 20\n%s%s", speeds, &b.Out, &b.Err)
			}
			last := speeds.Data[len(speeds.Data)-1]
			if zero := last[0] == 0 && last[1] == 0; zero != safe {
				t.Errorf("the last Speeds are % X; want w1 = 0: %t", last, safe)
			}
		})
	}
}
