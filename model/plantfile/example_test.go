package plantfile_test

import (
	"fmt"

	"lockstep/model/library"
	"lockstep/model/plantfile"
)

// An error names the file, the line, the column, the element, the key and the value with its unit.
func ExampleLoad() {
	const file = `plant: wheel
elements:
  rim:  {type: inertia, J: -2 kg.m2}
outputs:
  w: {speed: rim}
`
	_, err := plantfile.Load("wheel.yaml", []byte(file), library.Elements())
	fmt.Println(err)
	// Output: wheel.yaml:3:28: model: element "rim": J -2 kg.m2 is not positive (moment of inertia)
}
