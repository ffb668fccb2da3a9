package supervisor

import (
	"slices"
	"testing"

	"lockstep/io/yamlfile"
	"lockstep/rt/bench"
	"lockstep/rt/host"
)

// Two benches that write one image would disturb each other.
func TestInterfacesAndBoxesAreReserved(t *testing.T) {
	var buses []bench.Bus
	for _, name := range []string{"vcan0", "pair", "udp:192.0.2.7:5005", "shm:brake-box", "fd:3", "file:drive.log"} {
		buses = append(buses, bench.Bus{Name: yamlfile.Scalar{Text: "b-" + name}, Interface: yamlfile.Scalar{Text: name}})
	}
	want := []host.Interface{{Bus: "b-vcan0", Name: "vcan0"}, {Bus: "b-udp:192.0.2.7:5005", Name: "udp:192.0.2.7:5005"}, {Bus: "b-shm:brake-box", Name: "shm:brake-box"}}
	if got := exclusive(buses); !slices.Equal(got, want) {
		t.Errorf("reserved %v, want %v", got, want)
	}
}
