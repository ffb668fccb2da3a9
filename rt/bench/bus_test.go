package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/rt/bench/benchtest"
)

func TestDatabaseGivesTheDefaultsOfSending(t *testing.T) {
	msg := messages.Message{Name: "M", SendType: "OnChange", CycleNs: 100e6, DelayNs: 7e6, FastNs: 21e6, Repeats: 3}
	for _, c := range []struct {
		file sigmap.Sending
		sent bool // the file says how
		kind string
		want sigmap.Sending
	}{
		{sigmap.Sending{Repeats: -1}, false, "OnChange", sigmap.Sending{Send: sigmap.OnChange, GapNs: 10e6, Repeats: 3, EveryNs: 25e6}},
		{sigmap.Sending{Repeats: 0, GapNs: 20e6}, false, "spontan", sigmap.Sending{Send: sigmap.OnChange, GapNs: 20e6, EveryNs: 25e6}},
		{sigmap.Sending{Repeats: -1, CycleNs: 50e6}, false, "OnChange", sigmap.Sending{CycleNs: 50e6}},
		{sigmap.Sending{Repeats: -1, CycleNs: 50e6}, false, "CyclicAndSpontaneous", sigmap.Sending{Send: sigmap.Both, CycleNs: 50e6, GapNs: 10e6, Repeats: 3, EveryNs: 25e6}},
		{sigmap.Sending{Repeats: -1}, false, "Cyclic", sigmap.Sending{CycleNs: 100e6}},
		{sigmap.Sending{Repeats: -1}, false, "CyclicIfActive", sigmap.Sending{CycleNs: 100e6}},
		{sigmap.Sending{Repeats: -1}, false, "", sigmap.Sending{CycleNs: 100e6}},
		{sigmap.Sending{Repeats: 1}, true, "OnChange", sigmap.Sending{CycleNs: 100e6, Repeats: 1}}, // send: cyclic; Bind refuses the rest
		{sigmap.Sending{Repeats: 2, Send: sigmap.Both}, true, "Cyclic", sigmap.Sending{Send: sigmap.Both, CycleNs: 100e6, GapNs: 10e6, Repeats: 2, EveryNs: 25e6}},
	} {
		c.file.Message, c.want.Message, msg.SendType = "M", "M", c.kind
		got := (&Frame{Sending: c.file, Sent: c.sent}).sending(&messages.Database{Messages: []messages.Message{msg}}, 5e6)
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
			t.Errorf("%q: %+v, want %+v", c.kind, got, c.want)
		}
	}
	msg.CycleNs, msg.SendType = 0, "CyclicAndOnChange"
	if got := (&Frame{Sending: sigmap.Sending{Message: "M"}}).sending(&messages.Database{Messages: []messages.Message{msg}}, 5e6); got.Send != sigmap.OnChange {
		t.Errorf("both without a cycle is sent %v, want on change", got.Send)
	}
}

func guardedBench(t *testing.T, text string) (*Bench, error) {
	t.Helper()
	return Parse("b.yaml", benchtest.GuardedFolder(t), []byte(text))
}

func TestRecoveryIsDeclaredPerBus(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join("..", "..", "model", "plants", "powershift-bench.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int64{
		"wait": 0, "restart after 200 ms": 200e6, "restart after 1 s": 1e9,
		"restart": -1, "restart after 1 ms": -1, "restart after 2 h": -1, "restart after": -1, "restart after 3 bar": -1, "reboot": -1, "restart after NaN s": -1,
	} {
		data := strings.Replace(string(whole), "    database: ", "    recover: "+text+"\n    database: ", 1)
		b, err := Parse("bench.yaml", "", []byte(data))
		switch {
		case want >= 0 && (err != nil || b.Buses[0].RestartNs != want):
			t.Errorf("%s: %v", text, err)
		case want < 0 && (err == nil || !strings.Contains(err.Error(), "recover: \""+text+"\" is not one of: wait, restart after T (T: 10 ms to 3600 s)") || !strings.HasPrefix(err.Error(), "bench.yaml:")):
			t.Errorf("%s: %v", text, err)
		}
	}
}
