package dbc_test

import (
	"fmt"
	"log"

	"lockstep/io/dbc"
)

func ExampleParse() {
	const file = `BU_: TCU Bench
BO_ 256 TCU_1: 2 TCU
 SG_ pressure : 0|16@1+ (0.001,0) [0|20] "bar" Bench
`
	database, err := dbc.Parse("tcu.dbc", []byte(file))
	if err != nil {
		log.Fatal(err)
	}
	for _, message := range database.Messages {
		for _, signal := range message.Signals {
			fmt.Printf("%X %s.%s [%s]\n", message.ID, message.Name, signal.Name, signal.Unit)
		}
	}
	// Output: 100 TCU_1.pressure [bar]
}
