package messages

import (
	"slices"
	"testing"

	"lockstep/io/can"
)

// flawedDatabase returns a database with one flaw on each line from 2 to 14.
func flawedDatabase() *Database {
	signal := func(line int, name string, start, length int) Signal {
		return Signal{Name: name, Start: start, Len: length, Factor: 1, Line: line}
	}
	over, beyond := signal(2, "over", 4, 8), signal(3, "beyond", 60, 8)
	twice, flat, half := signal(4, "first", 16, 8), signal(5, "flat", 24, 8), signal(6, "half", 32, 16)
	flat.Factor, half.Float = 0, true
	stray, lost := signal(7, "stray", 48, 4), signal(8, "lost", 52, 4)
	stray.MuxedBy, stray.Ranges, lost.Ranges = "nobody", [][2]uint64{{0, 0}}, [][2]uint64{{0, 0}}
	return &Database{Messages: []Message{
		{Name: "Good", ID: 0x64, Len: 8, Line: 1, Signals: []Signal{signal(1, "first", 0, 8), over, beyond, twice, flat, half, stray, lost}},
		{Name: "Unmarked", ID: 0x18FF0503, Len: 8, Line: 9},
		{Name: "TooLong", ID: 0x40000065 | can.EFF, Len: 8, Line: 10},
		{Name: "Again", ID: 0x64, Len: 8, Line: 11},
		{Name: "Good", ID: 0x66, Len: 8, Line: 12},
		{Name: "Nine", ID: 0x67, Len: 9, Line: 13},
		{Name: "Long", ID: 0x68, Len: 65, Line: 14},
	}}
}

// flawAt is a line and the flaw reported there.
type flawAt struct {
	line int
	text string
}

func TestRepairReportsEachFlawAndItsRemedy(t *testing.T) {
	db := flawedDatabase()
	flaws := db.Repair()
	slices.SortFunc(flaws, func(a, b Flaw) int { return a.Line - b.Line })
	var got []flawAt
	for _, f := range flaws {
		got = append(got, flawAt{f.Line, f.String() + "; " + f.Remedy})
	}
	want := []flawAt{
		{2, `message "Good": signal "over": 4|8 overlaps signal "first"; both stay`},
		{3, `message "Good": signal "beyond": 60|8 does not fit the message's 8 bytes; left out`},
		{4, `message "Good": signal "first": the name is taken by line 1; called first_2`},
		{5, `message "Good": signal "flat": the factor is 0; taken as 1`},
		{6, `message "Good": signal "half": a float has 32 or 64 bits, not 16; taken as an integer`},
		{7, `message "Good": signal "stray": the message has no signal "nobody", its multiplexor; left out`},
		{8, `message "Good": signal "lost": the signal is multiplexed, but the message has no multiplexor (M); left out`},
		{9, `message "Unmarked": identifier 0x18FF0503 has more than 11 bits and is not marked as extended (bit 31); taken as extended`},
		{10, `message "TooLong": identifier 0x40000065 has more than 29 bits; left out`},
		{11, `message "Again": identifier 0x64 is taken by message "Good" in line 1; left out`},
		{12, `message "Good": the name is taken by line 1; called Good_2`},
		{13, `message "Nine": no CAN frame has 9 bytes: 0 to 8, or with CAN FD 12, 16, 20, 24, 32, 48, 64; taken as 12`},
		{14, `message "Long": no CAN frame has 65 bytes: 0 to 8, or with CAN FD 12, 16, 20, 24, 32, 48, 64; left out`},
	}
	if !slices.Equal(got, want) {
		t.Errorf("flaws\n%v\nwant\n%v", got, want)
	}
	if err := db.Check(); err != nil {
		t.Error(err)
	}
}

// A made-up name is not in use further down in the message.
func TestRepairMakesUpNamesNotInUse(t *testing.T) {
	db := &Database{Messages: []Message{{Name: "M", ID: 1, Len: 8, Signals: []Signal{
		octet("a", 0, ""), octet("a", 8, ""), octet("a_2", 16, ""), octet("a", 24, ""),
	}}}}
	flaws := db.Repair()
	var names []string
	for _, s := range db.Messages[0].Signals {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, []string{"a", "a_3", "a_2", "a_4"}) || len(flaws) != 2 {
		t.Errorf("names %v, flaws %v", names, flaws)
	}
	if err := db.Check(); err != nil {
		t.Error(err)
	}
}
