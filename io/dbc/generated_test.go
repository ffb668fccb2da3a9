package dbc_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"lockstep/io/dbc"
)

var folder = flag.String("generated", "", "folder that TestGeneratedDatabasesAreWrittenForInterop writes databases into")

// hil_test/interop reads them with another program, too.
func TestGeneratedDatabasesAreWrittenForInterop(t *testing.T) {
	if *folder == "" {
		*folder = t.TempDir()
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 24 {
		file := filepath.Join(*folder, fmt.Sprintf("generated%d.dbc", i))
		if err := os.WriteFile(file, []byte(write(generate(random.IntN))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWrittenDatabaseIsReadBackUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := generate(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") })
		text := write(want)
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

// The generated databases are worth testing: fixed seeds make the counts independent of chance.
func TestGeneratedDatabasesNestMultiplexors(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	signals, deep := 0, 0
	for range 100 {
		for _, m := range generate(random.IntN).Messages {
			for _, s := range m.Signals {
				signals++
				if s.Multiplexor && s.MuxedBy != "" {
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

// Every signal of a generated database is on a page that can be sent.
func TestEveryPageOfGeneratedDatabasesIsSent(t *testing.T) {
	random, pages, sent := rand.New(rand.NewPCG(3, 4)), 0, 0
	for range 300 {
		db := generate(random.IntN)
		for i := range db.Messages {
			if n := dbc.CheckPages(t, db, &db.Messages[i]); n > 0 {
				pages, sent = pages+n, sent+1
			}
		}
	}
	if sent < 20 || pages < 60 {
		t.Errorf("only %d pages of %d messages in 300 databases", pages, sent)
	}
	t.Logf("%d pages of %d messages", pages, sent)
}
