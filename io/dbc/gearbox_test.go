package dbc

import (
	"encoding/binary"
	"os"
	"reflect"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
)

// gearbox reads testdata/gearbox.dbc, which is Windows-1252, strictly.
func gearbox(t *testing.T) *messages.Database {
	t.Helper()
	data, err := os.ReadFile("testdata/gearbox.dbc")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(data))
}

// messageOf returns the message called name without its signals.
func messageOf(t *testing.T, db *messages.Database, name string) messages.Message {
	t.Helper()
	for _, m := range db.Messages {
		if m.Name == name {
			m.Signals = nil
			return m
		}
	}
	t.Fatalf("no message %q", name)
	return messages.Message{}
}

func signalOf(t *testing.T, db *messages.Database, name string) *messages.Signal {
	t.Helper()
	for i := range db.Messages {
		if s := db.Messages[i].Signal(name); s != nil {
			return s
		}
	}
	t.Fatalf("no signal %q", name)
	return nil
}

func TestMessagesHaveTheirAttributes(t *testing.T) {
	db := gearbox(t)
	if len(db.Messages) != 7 {
		t.Errorf("%d messages", len(db.Messages))
	}
	const box, stand = "Getriebe_MQB", "Pruefstand"
	for _, want := range []messages.Message{
		{Name: "Getriebe_11", ID: 0xAD, Len: 8, Sender: box, CycleNs: 10e6, SendType: "Cyclic",
			Comment: "Getriebe an Motor,\nfür die Momentenführung"},
		{Name: "Getriebe_12", ID: 0xAE, Len: 8, Sender: box, CycleNs: 10e6, FastNs: 2.5e6, DelayNs: 2e6,
			Repeats: 4, SendType: "CyclicIfActive"},
		{Name: "Kupplungsdruck", ID: 0x110, Len: 8, Sender: stand, OtherSenders: []string{"Gateway_MQB"}, SendType: "NoMsgSendType"},
		{Name: "Adaption", ID: 0x18FEF11E | can.EFF, Len: 8, Sender: box, SendType: "NoMsgSendType"},
		{Name: "Messdaten", ID: 0x580, Len: 64, Sender: stand, SendType: "NoMsgSendType", FD: true, BRS: true},
		{Name: "EEC1", ID: 0x0CF004FE | can.EFF, Len: 8, Sender: "Motor_MQB", SendType: "NoMsgSendType", J1939: true},
		{Name: "Gangwahlhebel_und_Anzeige_im_Kombiinstrument", ID: 0x520, Len: 4, Sender: "Gateway_MQB", SendType: "NoMsgSendType"},
	} {
		got := messageOf(t, db, want.Name)
		got.Line = 0
		if !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v\nwant %+v", got, want)
		}
	}
}

func TestSignalsHaveTheirAttributes(t *testing.T) {
	db := gearbox(t)
	for _, want := range []messages.Signal{
		{Name: "GE_Temperatur", Start: 48, Len: 8, Factor: 1, Offset: -58, Min: -58, Max: 196, Unit: "°C",
			Receivers: []string{"Gateway_MQB"}, Initial: 78, HasInitial: true, Comment: `Öltemperatur im Sumpf, "heiß" ab 120 °C`},
		{Name: "GE_Drehzahl_Ab", Start: 23, Len: 16, BigEndian: true, Signed: true, Factor: 0.25, Min: -8192, Max: 8191.75,
			Unit: "U/min", Receivers: []string{"Motor_MQB"}, Initial: -40, HasInitial: true,
			Values: []messages.Value{{Raw: -32768, Text: "ungültig"}}},
		{Name: "GE_Fahrstufe", Start: 42, Len: 4, Factor: 1, Max: 15, Receivers: []string{"Gateway_MQB", "Pruefstand"},
			Values: []messages.Value{{Raw: 5, Text: "P"}, {Raw: 6, Text: "R"}, {Raw: 7, Text: "N"}, {Raw: 8, Text: "D"}, {Raw: 15, Text: "Fehler"}}},
		{Name: "KD_Kupplung", Len: 4, Factor: 1, Max: 15, Receivers: []string{"Getriebe_MQB"}, Multiplexor: true},
		{Name: "KD_Strom_C1", Start: 31, Len: 16, BigEndian: true, Signed: true, Factor: 0.0001, Min: -3, Max: 3, Unit: "A",
			Receivers: []string{"Getriebe_MQB"}, MuxedBy: "KD_Kupplung", Ranges: [][2]uint64{{0, 0}}},
		{Name: "AD_Unterblock", Start: 8, Len: 4, Factor: 1, Max: 15, Receivers: []string{"Pruefstand"},
			Multiplexor: true, MuxedBy: "AD_Block", Ranges: [][2]uint64{{0, 0}, {8, 15}}},
		{Name: "AD_Fuelldruck", Start: 16, Len: 12, Factor: 0.01, Max: 40.95, Unit: "bar", Receivers: []string{"Pruefstand"},
			MuxedBy: "AD_Unterblock", Ranges: [][2]uint64{{2, 2}, {4, 7}}},
		{Name: "MD_Winkel", Start: 32, Len: 64, Signed: true, Float: true, Factor: 1, Unit: "rad", Receivers: []string{"Getriebe_MQB"}},
		{Name: "MD_Zaehler", Start: 448, Len: 64, Factor: 1, Max: 1.84467440737096e19, Receivers: []string{"Getriebe_MQB"},
			Values: []messages.Value{{Raw: -1, Text: "Überlauf"}}},
		{Name: "EngSpeed", Start: 24, Len: 16, Factor: 0.125, Max: 8031.875, Unit: "rpm", Receivers: []string{"Getriebe_MQB"}, SPN: 190},
		{Name: "Waehlhebelposition_der_ersten_Reihe", Len: 4, Factor: 1, Max: 15, Receivers: []string{"Getriebe_MQB"}},
	} {
		got := *signalOf(t, db, want.Name)
		got.Line = 0
		if !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v\nwant %+v", got, want)
		}
	}
}

// A float64 is exact up to 2^53.
func TestStartValuesOf64BitsAreExact(t *testing.T) {
	db := parse(t, `BO_ 1 M: 8 X
 SG_ u : 0|64@1+ (1,0) [0|0] "" X
BO_ 2 N: 8 X
 SG_ i : 0|64@1- (1,0) [0|0] "" X
BO_ 3 O: 8 X
 SG_ u : 0|60@1+ (1,0) [0|0] "" X
BA_DEF_ SG_ "GenSigStartValue" FLOAT -1E20 1E20;
BA_DEF_DEF_ "GenSigStartValue" 0;
BA_ "GenSigStartValue" SG_ 1 u 18446744073709551613;
BA_ "GenSigStartValue" SG_ 2 i -9223372036854775805;
BA_ "GenSigStartValue" SG_ 3 u 18446744073709551613;
`)
	spec := sigmap.Spec{PeriodNs: 1}
	for _, name := range []string{"M", "N", "O"} {
		spec.Sendings = append(spec.Sendings, sigmap.Sending{Message: name, CycleNs: 1})
	}
	m, err := sigmap.Bind(db, spec, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		bits uint64
		text string
	}{{1<<64 - 3, "18446744073709551613"}, {1<<63 + 3, "-9223372036854775805"}, {1<<60 - 1, "18446744073709551613"}} {
		var f can.Frame
		m.Encode(&f, i, 0, nil, false)
		if got := binary.LittleEndian.Uint64(f.Data[:]); got != want.bits {
			t.Errorf("%s: 0x%X, want 0x%X", spec.Sendings[i].Message, got, want.bits)
		}
		if got := db.Messages[i].Signals[0].FormatInitial(); got != want.text {
			t.Errorf("%s: %s, want %s", spec.Sendings[i].Message, got, want.text)
		}
	}
}

// By Vector's definition an attribute without a value has the default.
func TestAttributesHaveDefaults(t *testing.T) {
	const head = "BO_ 1 M: 8 X\n SG_ s : 0|8@1+ (1,0) [0|0] \"\" X\nBO_ 2 N: 8 X\n SG_ s : 0|8@1+ (1,0) [0|0] \"\" X\nBO_ 2147483651 E: 8 X\n"
	db := parse(t, head+`BA_DEF_ BO_ "GenMsgCycleTime" INT 0 1000;
BA_DEF_ BO_ "VFrameFormat" INT 0 15;
BA_DEF_ BO_ "CANFD_BRS" ENUM "0","1";
BA_DEF_ SG_ "GenSigStartValue" INT 0 255;
BA_DEF_ "ProtocolType" STRING ;
BA_DEF_DEF_ "GenMsgCycleTime" 100;
BA_DEF_DEF_ "VFrameFormat" 14;
BA_DEF_DEF_ "CANFD_BRS" "1";
BA_DEF_DEF_ "GenSigStartValue" 7;
BA_DEF_DEF_ "ProtocolType" "J1939";
BA_ "GenMsgCycleTime" BO_ 2 0;
BA_ "CANFD_BRS" BO_ 2 "0";
BA_ "GenSigStartValue" SG_ 2 s 8;
`)
	m, n, e := &db.Messages[0], &db.Messages[1], &db.Messages[2]
	if m.CycleNs != 100e6 || !m.FD || !m.BRS || m.J1939 || m.Signals[0].Initial != 7 || !m.Signals[0].HasInitial {
		t.Errorf("default: %+v", m)
	}
	if n.CycleNs != 0 || !n.FD || n.BRS || n.Signals[0].Initial != 8 {
		t.Errorf("given: %+v", n)
	}
	if e.FD || !e.J1939 {
		t.Errorf("an extended identifier has the format of a standard one, and the protocol of no message: %+v", e)
	}
}
