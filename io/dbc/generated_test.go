package dbc_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"lockstep/io/dbc"
	"lockstep/io/dbc/dbctest"
)

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := dbctest.Generate(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") })
		text := dbctest.Write(want)
		want.File = "x.dbc"
		got, err := dbc.Parse("x.dbc", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("read %+v\nwant %+v\n%s", got, want, text)
		}
	})
}

// The databases that are read back are worth it. Of fixed numbers: how many random
// ones have is a matter of luck, and of how many there are.
func TestGeneratedDatabasesHaveSignalsAndMultiplexorsUnderMultiplexors(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	signals, deep := 0, 0
	for range 100 {
		for _, m := range dbctest.Generate(random.IntN).Messages {
			for _, s := range m.Signals {
				signals++
				if s.Multiplexor && s.Under != "" {
					deep++
				}
			}
		}
	}
	if signals < 500 || deep < 20 {
		t.Errorf("only %d signals, %d multiplexed multiplexors in 100 databases", signals, deep)
	}
	t.Logf("%d signals, %d multiplexed multiplexors in 100 databases", signals, deep)
}
