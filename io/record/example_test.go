package record_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"lockstep/io/record"
)

func ExampleReader() {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("example-%d.rec", os.Getpid()))
	defer os.Remove(path)
	w, err := record.Create(path, record.Header{Period: 5e6, Outputs: []record.Signal{{Name: "w", Unit: "rad/s"}}})
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(w.Tick(&record.Tick{Index: 1, Y: []float64{0.5}}), w.Close()); err != nil {
		log.Fatal(err)
	}

	r, err := record.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for {
		entry, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		if tick := entry.Tick; entry.Kind == record.TickEntry {
			fmt.Printf("tick %d: %s = %g %s\n", tick.Index, r.Header.Outputs[0].Name, tick.Y[0], r.Header.Outputs[0].Unit)
		}
	}
	// Output: tick 1: w = 0.5 rad/s
}
