package bench

import (
	"strings"
	"testing"

	"lockstep/model/plants"
	"lockstep/rt/network"
)

// keyBench is a bench with all keys of ignition, network management and supply.
const keyBench = `bench: b
plant: two-masses
period: 5 ms
network: {start: standby, signal: Pedals.ignition, wake: {by: [NM_TCU, 0x120], to: ignition, hold: 1 s}}
power: {scpi: "192.0.2.5:5025", on: OUTP 1, off: [OUTP 0], volts: ["VOLT %g", OUTP 1], check: false, timeout: 2 s, on_failure: stop}
buses:
  drive:
    interface: pair
    database: automatic.dbc
    nm: {message: NM_Bench, node: 0x10, from: NM_TCU, cycle: 100 ms, offset: 7 ms, repeat: 300 ms, timeout: 400 ms, wait: 200 ms, immediate: 2, immediate_cycle: 20 ms, node_byte: 1, control_byte: none, awake: [crank]}
    restbus:
      ShaftSpeeds: {cycle: 10 ms, delay: 28 ms}
      Pedals: {cycle: 10 ms, in: all}
    messages: {ClutchPressures: {timeout: 0 s}}
`

func prepareKey(t *testing.T, text string) (*Handover, error) {
	t.Helper()
	b, err := Parse("b.yaml", "", []byte(text))
	if err != nil {
		return nil, err
	}
	return Prepare(b)
}

func TestNetworkBecomesTables(t *testing.T) {
	h, err := prepareKey(t, keyBench)
	if err != nil {
		t.Fatal(err)
	}
	p := h.Loop.Network
	for i, want := range map[string][network.States]int64{
		"ShaftSpeeds": {-1, -1, 6, 6, 6}, "Pedals": {}, "NM_Bench": {},
	} {
		for j, tx := range h.Maps[0].Tx {
			if tx.Name == i && i != "NM_Bench" && p.Delays[j] != want {
				t.Errorf("%s: delays %v, want %v", i, p.Delays[j], want)
			}
		}
	}
	n := p.Nodes[0]
	want := network.NodePlan{Message: n.Message, From: n.From, Awake: [network.States]bool{network.Crank: true}, ID: 0x10, IDByte: 1,
		ControlByte: network.NoByte, Cycle: 20, Offset: 2, Repeat: 60, Timeout: 80, Wait: 40, Immediate: 2, ImmediateCycle: 4}
	if got := n; got.Awake != want.Awake || got.ID != want.ID || got.IDByte != want.IDByte || got.ControlByte != want.ControlByte || got.Cycle != want.Cycle ||
		got.Offset != want.Offset || got.Repeat != want.Repeat || got.Timeout != want.Timeout || got.Wait != want.Wait || got.Immediate != want.Immediate ||
		got.ImmediateCycle != want.ImmediateCycle || h.Maps[0].Tx[n.Message].Name != "NM_Bench" {
		t.Errorf("node %+v, want %+v", got, want)
	}
	wakes := 0
	for i := range h.Maps[0].Rx {
		if p.Wake.By[0][i] {
			wakes++
		}
		if n.From[i] != (h.Maps[0].Rx[i].Name == "NM_TCU") {
			t.Errorf("%s: from %t", h.Maps[0].Rx[i].Name, n.From[i])
		}
	}
	if wakes != 2 || p.Wake.To != network.Ignition || p.Wake.Hold != 200 || p.Start != network.Standby {
		t.Errorf("wake-up %+v by %d messages, want 2; start %v", p.Wake, wakes, p.Start)
	}
	if got := p.Signals[0].Values; got != [network.States]float64{1, 2, 3, 4, 5} {
		t.Errorf("the signal has the values %v, want those whose texts are the states: 1 to 5", got)
	}
	if s := h.Bench.Power; s.SCPI != "192.0.2.5:5025" || !s.Stop || s.Check || s.Timeout != 2e9 || len(s.Set) != 2 {
		t.Errorf("supply %+v", s)
	}
}

func TestMistakesInTheNetworkAreNamedWithTheirPosition(t *testing.T) {
	const net = "network: {start: standby, signal: Pedals.ignition, wake: {by: [NM_TCU, 0x120], to: ignition, hold: 1 s}}\n"
	for _, c := range []struct{ old, new, want string }{
		{"start: standby", "start: drive", `4:18: bench: network: start: "drive" is no ignition state; there are off, standby, ignition, crank, run, and on for run`},
		{"Pedals.ignition", "Pedals", `"Pedals" is not of the form MESSAGE.SIGNAL`},
		{"Pedals.ignition", "Pedal.ignition", "the bench sends no message Pedal"},
		{"Pedals.ignition", "Pedals.ignitio", `signal "ignitio"`},
		{"by: [NM_TCU, 0x120]", "by: 0x121", "wake: by: the bench receives no message 0x121; name one, add it to messages, or write any"},
		{"to: ignition", "to: off", "wake: to: off is no state after a wake-up"},
		{net, "", "power: it needs the ignition of the bench: add network: {start: off}"},
		{"from: NM_TCU", "from: NM_TCV", `"NM_TCV"`},
		{"message: NM_Bench, ", "", "nm: the bench's own message is missing (message: NM_Bench)"},
		{"node: 0x10, ", "", "nm: the node identifier is missing (node: 0x10)"},
		{"node: 0x10", "node: 256", "node"},
		{"timeout: 400 ms, wait", "timeout: 100 ms, wait", "the timeout, 100 ms, is not longer than the cycle, 100 ms"},
		{"node_byte: 1, control_byte: none", "control_byte: 0", "nm: node_byte and control_byte are both 0: each needs a byte of its own, or none"},
		{"node_byte: 1", "node_byte: 8", "nm: node_byte: NM_Bench has 8 bytes, counted from 0, and no byte 8"},
		{"awake: [crank]", "awake: [crankk]", `"crankk" is no ignition state`},
		{"in: all", "in: [run, ran]", `frame Pedals: in: "ran" is no ignition state`},
		{"on_failure: stop", "on_failure: halt", `"halt" is unknown`},
		{`scpi: "192.0.2.5:5025"`, "scpi: supply", `power: scpi: "supply" is not HOST:PORT, like 192.0.2.5:5025`},
		{`scpi: "192.0.2.5:5025"`, "exec: ./a, scpi: \"h:1\"", "power: expected one of exec: ./PROGRAM, scpi: HOST:PORT and gpio: /dev/gpiochipN"},
		{"VOLT %g", "VOLT %d", "power: volts: a command has at most one %, as %g in place of the voltage"},
		{"VOLT %g", "VOLT", "power: volts: no command has %g in place of the voltage, like VOLT %g"},
		{"timeout: 2 s", "line: 3", "power: line belongs to scpi or gpio, which the section does not have"},
	} {
		if strings.Count(keyBench, c.old) != 1 {
			t.Fatalf("%q is %d times in the bench", c.old, strings.Count(keyBench, c.old))
		}
		_, err := prepareKey(t, strings.Replace(keyBench, c.old, c.new, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "b.yaml:") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q in place of %q:\n got  %v\n want %s", c.new, c.old, err, c.want)
		}
	}
	without := strings.Replace(strings.Replace(keyBench, net, "", 1), keyBench[strings.Index(keyBench, "power:"):strings.Index(keyBench, "buses:")], "", 1)
	if _, err := prepareKey(t, without); err == nil || !strings.Contains(err.Error(), "needs the ignition of the bench") {
		t.Errorf("nm without network: %v", err)
	}
}

// The bytes of the network management would overwrite the checksum or a signal of such a message.
func TestNMMessageIsAMessageOfItsOwn(t *testing.T) {
	text, err := plants.Read("automatic-bench")
	if err != nil {
		t.Fatal(err)
	}
	const protect = ", protect: {profile: e2e-1a, data_id: 0x211, counter: counter_D, checksum: checksum_D}"
	wrong := strings.Replace(string(text), "message: NM_Bench", "message: Pedals", 1)
	for _, c := range []struct{ text, want string }{
		{wrong, "nm: Pedals is protected, so nm may not change its bytes: name a message without protect"},
		{strings.Replace(wrong, protect, "", 1), "nm: outputs of the plant drive Pedals, so nm may not change its bytes: name a message of its own"},
	} {
		if _, err := prepareKey(t, c.text); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "b.yaml:") {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}
