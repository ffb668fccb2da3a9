package dbc_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"lockstep/io/dbc"
	"lockstep/io/dbc/dbctest"
)

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	signals, deep := 0, 0
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
		for i := range got.Messages {
			for _, s := range got.Messages[i].Signals {
				signals++
				if s.Multiplexor && s.Under != "" {
					deep++
				}
			}
		}
	})
	if signals < 100 || deep == 0 {
		t.Errorf("only %d signals, %d multiplexed multiplexors", signals, deep)
	}
}
