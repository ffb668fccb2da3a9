package sigmap

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lockstep/io/can"
	"lockstep/io/messages"
)

// groupDatabase is a database as tools write it for any vehicle: its source address is 254, and so is
// the destination of its directed group. Own is a copy of Group for one sender.
func groupDatabase() *messages.Database {
	octet := []messages.Signal{{Name: "x", Len: 8, Factor: 1}}
	return &messages.Database{File: "any.dbc", Messages: []messages.Message{
		{Name: "Group", ID: 0x18F004FE | can.EFF, Len: 8, J1939: true, Signals: octet, Line: 1},
		{Name: "Own", ID: 0x0CF00405 | can.EFF, Len: 8, J1939: true, Signals: octet, Line: 2},
		{Name: "Command", ID: 0x0C00FEFE | can.EFF, Len: 8, J1939: true, Signals: octet, Line: 3},
		{Name: "ToEngine", ID: 0x0C000003 | can.EFF, Len: 8, J1939: true, Signals: octet, Line: 4},
		{Name: "Plain", ID: 0x0CF00BFE | can.EFF, Len: 8, Signals: octet, Line: 5},
	}}
}

// address returns a given address.
func address(v uint8) Address { return Address{Given: true, Value: v} }

// bindGroups binds received and sent messages of groupDatabase; own are the addresses of the bench.
func bindGroups(own []uint8, sent []Sending, received ...Reception) (*Map, error) {
	s := Spec{PeriodNs: period, Addresses: own, Sendings: sent, Receptions: received}
	for i := range s.Sendings {
		s.Sendings[i].CycleNs, s.Sendings[i].PhaseNs = period, FreePhase
	}
	return Bind(groupDatabase(), s, ports("1", "u0"), ports("1", "y0"))
}

// found returns the message that a map finds for an identifier; "" for none.
func found(m *Map, id uint32) string {
	if i := m.Find(id | can.EFF); i >= 0 {
		return m.Rx[i].Name
	}
	return ""
}

func TestMessageOfJ1939IsFoundByItsGroupAndAddresses(t *testing.T) {
	for _, c := range []struct {
		name     string
		own      []uint8
		received []Reception
		want     map[uint32]string
	}{
		{"from any", nil, []Reception{{Message: "Group"}},
			map[uint32]string{0x18F00403: "Group", 0x0CF004AB: "Group", 0x18F00503: "", 0x19F00403: "", 0x1AF00403: ""}},
		{"from one", nil, []Reception{{Message: "Group", From: address(3)}},
			map[uint32]string{0x18F00403: "Group", 0x00F00403: "Group", 0x18F00404: ""}},
		{"the database names the sender", nil, []Reception{{Message: "Own"}},
			map[uint32]string{0x0CF00405: "Own", 0x18F00405: "Own", 0x0CF00406: ""}},
		{"the bench opens the sender", nil, []Reception{{Message: "Own", From: address(254)}},
			map[uint32]string{0x0CF00406: "Own"}},
		{"the more specific message comes first", nil, []Reception{{Message: "Group"}, {Message: "Own"}},
			map[uint32]string{0x18F00405: "Own", 0x18F00406: "Group"}},
		{"to an address of the bench, or to all", []uint8{0, 11}, []Reception{{Message: "Command"}},
			map[uint32]string{0x0C000003: "Command", 0x0C000B07: "Command", 0x0C00FF03: "Command", 0x0C001003: ""}},
		{"to any, without an address", nil, []Reception{{Message: "Command"}}, map[uint32]string{0x0C001003: "Command"}},
		{"to any", []uint8{0}, []Reception{{Message: "Command", Destination: address(254)}}, map[uint32]string{0x0C001003: "Command"}},
		{"to one, from one", []uint8{0}, []Reception{{Message: "Command", From: address(3), Destination: address(11)}},
			map[uint32]string{0x0C000B03: "Command", 0x1C000B03: "Command", 0x0C00FF03: "Command", 0x0C000003: "", 0x0C000B04: ""}},
		{"as in the database", nil, []Reception{{Message: "ToEngine"}},
			map[uint32]string{0x18000003: "ToEngine", 0x0C00FF03: "ToEngine", 0x0C000B03: "", 0x0C000004: ""}},
		{"without the mark of J1939", nil, []Reception{{Message: "Plain"}},
			map[uint32]string{0x0CF00BFE: "Plain", 0x18F00BFE: "", 0x0CF00B03: ""}},
	} {
		m, err := bindGroups(c.own, nil, c.received...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		filters := m.Filters()
		for id, want := range c.want {
			if got := found(m, id); got != want {
				t.Errorf("%s: %08X is %q, want %q", c.name, id, got, want)
			}
			passes := slices.ContainsFunc(filters, func(f can.Filter) bool { return (id|can.EFF)&f.Mask == f.ID&f.Mask })
			if passes != (want != "") {
				t.Errorf("%s: the filters pass %08X: %t", c.name, id, passes)
			}
		}
	}
}

func TestSentMessageOfJ1939GetsItsAddresses(t *testing.T) {
	for _, c := range []struct {
		own  []uint8
		sent Sending
		id   uint32
		err  string
	}{
		{nil, Sending{Message: "Group", Source: address(0)}, 0x18F00400, ""},
		{[]uint8{33}, Sending{Message: "Group"}, 0x18F00421, ""},
		{nil, Sending{Message: "Group"}, 0, "the database gives it no source address (any.dbc:1: 0xFE); name one: source: 0x00"},
		{[]uint8{1, 2}, Sending{Message: "Group"}, 0, "no source address"},
		{[]uint8{1, 2}, Sending{Message: "Own"}, 0x0CF00405, ""},
		{nil, Sending{Message: "Own", Source: address(7)}, 0x0CF00407, ""},
		{nil, Sending{Message: "Command", Source: address(5), Destination: address(3)}, 0x0C000305, ""},
		{nil, Sending{Message: "Command", Source: address(5), Destination: address(255)}, 0x0C00FF05, ""},
		{nil, Sending{Message: "Command", Source: address(5)}, 0, "no destination address (any.dbc:3: 0xFE)"},
		{nil, Sending{Message: "Group", Source: address(5), Destination: address(3)}, 0, "parameter group 61444 goes to all nodes"},
		{nil, Sending{Message: "Plain", Source: address(5)}, 0, "does not mark it as a J1939 message"},
		{nil, Sending{Message: "Plain"}, 0x0CF00BFE, ""},
	} {
		m, err := bindGroups(c.own, []Sending{c.sent})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v: %v, want %q", c.sent, err, c.err)
			}
			continue
		}
		if err != nil || m.Tx[0].ID != c.id|can.EFF {
			t.Errorf("%+v: %v, %+v, want %08X", c.sent, err, m, c.id)
		}
	}
}

func TestTwoMessagesWithTheSameGroupAndSenderAreRefused(t *testing.T) {
	_, err := bindGroups(nil, nil, Reception{Message: "Group", From: address(5)}, Reception{Message: "Own"})
	if err == nil || !strings.Contains(err.Error(), "message Group: message Own is received by the same parameter group") {
		t.Error(err)
	}
}

// A search through all patterns, one by one, finds the same message.
func TestFindAgreesWithASearchOneByOne(t *testing.T) {
	m, err := bindGroups([]uint8{0, 11}, nil, Reception{Message: "Group"}, Reception{Message: "Own"}, Reception{Message: "Command"},
		Reception{Message: "ToEngine"}, Reception{Message: "Plain"})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom([]uint32{0x18F00400, 0x0CF00B00, 0x0C000000, 0x0C000B00, 0x0C00FF00, 0x0C001000}).Draw(t, "group")
		id |= rapid.SampledFrom([]uint32{0, 3, 5, 254}).Draw(t, "source") | rapid.Uint32Range(0, 7).Draw(t, "flags")<<29
		id ^= rapid.Uint32Range(0, 7).Draw(t, "priority") << 26
		want := -1
		for i := len(m.Patterns) - 1; i >= 0; i-- {
			if p := &m.Patterns[i]; id&p.Mask == p.ID {
				want = p.Rx
			}
		}
		if got := m.Find(id); got != want {
			t.Fatalf("%08X is message %d, want %d", id, got, want)
		}
	})
}

// Three messages differ in their destination only. A frame to all is for each of them, one to a node for its
// own, and one from another sender for none of them.
func TestFrameToAllIsForEachMessageThatDiffersInItsDestination(t *testing.T) {
	octet := []messages.Signal{{Name: "x", Len: 8, Factor: 1}}
	db := &messages.Database{File: "to.dbc"}
	for name, id := range map[string]uint32{"ToEngine": 0x0C000003, "ToRetarder": 0x0C001003, "ToAny": 0x0C00FE03, "ToOther": 0x0C001005} {
		db.Messages = append(db.Messages, messages.Message{Name: name, ID: id | can.EFF, Len: 1, J1939: true, Signals: octet, Line: 1})
	}
	slices.SortFunc(db.Messages, func(a, b messages.Message) int { return strings.Compare(a.Name, b.Name) })
	spec, names := Spec{PeriodNs: period}, []string{}
	for _, m := range db.Messages {
		names = append(names, m.Name)
		spec.Receive = append(spec.Receive, Link{m.Name, "x", m.Name})
	}
	m, err := Bind(db, spec, ports("1", names...), nil)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[uint32]string{
		0x0C00FF03: "ToAny ToEngine ToRetarder", 0x1800FF03: "ToAny ToEngine ToRetarder",
		0x0C000003: "ToEngine", 0x0C001003: "ToRetarder", 0x0C002003: "ToAny", 0x0C00FF05: "ToOther", 0x0C00FF07: "",
	} {
		f := can.Frame{ID: id | can.EFF, Len: 1, Data: [64]byte{7}}
		u, next := make([]float64, len(names)), f
		m.Decode(u, &f)
		for i, n := m.FindToAll(f.ID), 0; ; n++ {
			if i = m.Further(i, &next); i < 0 || n > len(m.Rx) {
				break
			}
			if at, result := m.Decode(u, &next); at != i || result != OK {
				t.Errorf("%08X: message %d for %d, result %d", id, at, i, result)
			}
		}
		var got []string
		for i, v := range u {
			if v == 7 {
				got = append(got, db.Messages[i].Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%08X is for %q, want %q", id, got, want)
		}
	}
}
