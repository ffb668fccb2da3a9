package dbc

import (
	"math"
	"testing"

	"lockstep/io/can"
	"lockstep/io/sigmap"
)

// Every message of a file is sent with its start values, protected where the real network
// protects it: Getriebe_11 with the identifiers that opendbc gives.
func TestMessagesAreSentWithTheirStartValues(t *testing.T) {
	db := gearbox(t)
	e2e := sigmap.ProtectionSpec{Profile: "e2e-2", DataIDs: []uint32{
		0x3F, 0x69, 0x39, 0xDC, 0x94, 0xF9, 0x14, 0x64, 0xD8, 0x6A, 0x34, 0xCE, 0xA2, 0x55, 0xB5, 0x2C}}
	s := sigmap.Spec{PeriodNs: 1e6}
	for i := range db.Messages {
		m := sigmap.Sending{Message: db.Messages[i].Name, CycleNs: 10e6, PhaseNs: sigmap.FreePhase}
		if db.Messages[i].J1939 { // its source address is open
			m.Source = sigmap.Address{Given: true}
		}
		if m.Message == "Getriebe_11" {
			m.Protect = []sigmap.ProtectionSpec{e2e}
		}
		s.Sendings = append(s.Sendings, m)
	}
	m, err := sigmap.Bind(db, s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	signals := 0
	for i := range db.Messages {
		msg := &db.Messages[i]
		var f can.Frame
		if !m.Encode(&f, i, 0, nil, false) || f.ID != msg.ID && !msg.J1939 || int(f.Len) != msg.Len || f.FD() != msg.FD {
			t.Errorf("%s: %+v", msg.Name, f)
		}
		for k := range msg.Signals {
			sig := &msg.Signals[k]
			if !msg.Present(sig, &f.Data) || len(m.Tx[i].Protect) > 0 && m.Tx[i].Protect[0].Carries(sig) != "" {
				continue
			}
			want := sig.Offset
			if sig.HasInitial {
				want = sig.Initial*sig.Factor + sig.Offset
			} else if msg.J1939 {
				want = sig.Value(math.MaxUint64 >> (64 - sig.Len))
			}
			if got := sig.Value(sig.Raw(&f.Data)); got != want {
				t.Errorf("%s.%s is sent as %g, want %g", msg.Name, sig.Name, got, want)
			}
			signals++
		}
	}
	if signals < 20 {
		t.Errorf("only %d signals: this proves little", signals)
	}
	for i := range m.Tx {
		if tx := &m.Tx[i]; tx.Name == "Getriebe_11" && (len(tx.Protect) != 1 || tx.Protect[0].Next != 2) {
			t.Errorf("Getriebe_11 is not protected: %d groups", len(tx.Protect))
		}
	}
}
