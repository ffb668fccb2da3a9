package dbc_test

import (
	"os"
	"testing"

	"lockstep/io/dbc"
)

// The writer of the tests keeps what lockstep uses of a database: a file that Parse accepts is written,
// read and written again the same.
func FuzzWrittenDatabaseIsReadBack(f *testing.F) {
	for _, file := range []string{"testdata/gearbox.dbc", "../../model/plants/powershift.dbc", "../../model/plants/j1939.dbc"} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("BO_ 1 M: 8 X\n SG_ s M : 0|8@0- (.25,-1E3) [0|0] \"\xB0\" X\n SG_ t m3 : 15|8@0+ (1,0) [0|9] \"\" X"))
	f.Fuzz(func(t *testing.T, data []byte) {
		db, err := dbc.Parse("x.dbc", data)
		if err != nil {
			return
		}
		once := write(db)
		again, err := dbc.Parse("x.dbc", []byte(once))
		if err != nil {
			t.Fatalf("what is written is refused: %v\n%s", err, once)
		}
		if twice := write(again); twice != once {
			t.Fatalf("written\n%s\nwritten again\n%s", once, twice)
		}
	})
}
