package labs

import (
	"strings"
	"syscall"
	"testing"

	"lockstep/hil_test/lab"
)

// A controller reports bus-off by an error frame; vcan passes on such a frame from a program. Then
// the bench sends the safe values, w1 = 0 among them, or continues, as its setting bus_off says.
func TestLabBusOffHasTheEffectOfItsSetting(t *testing.T) {
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
			if reported := strings.Count(b.Err.String(), "\n") == 1; reported != safe {
				t.Errorf("stderr: %q", b.Err.String())
			}
			byID, _ := lab.EndCandump(t, dump)
			speeds := byID["200"]
			if speeds == nil || len(speeds.Data) < 20 { // a busy host may send less than a second of them
				t.Fatalf("Speeds on the bus %+v; want 20\n%s%s", speeds, &b.Out, &b.Err)
			}
			last := speeds.Data[len(speeds.Data)-1]
			if zero := last[0] == 0 && last[1] == 0; zero != safe {
				t.Errorf("the last Speeds are % X; want w1 = 0: %t", last, safe)
			}
		})
	}
}
