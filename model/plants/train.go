package plants

import (
	"bytes"
	_ "embed" // trainText
	"fmt"
	"strconv"
	"strings"
	"text/template"
)

//go:embed train.yaml.tmpl
var trainText string

// mostCars is the number of cars of the longest train.
const mostCars = 40

// listed holds the numbers of cars of the trains that List names.
var listed = []int{3, 20}

// train is the data of the template trainText: a train of equal cars, each as rail17.
type train struct{ Cars int }

// brake is the brake of one wheel. The brakes of a car begin to act 0.3 s after those of the car in
// front.
type brake struct {
	Name  string
	Force int     // force of the first braking, N
	from  float64 // time at which the brake begins to act, s
}

type link struct{ Rear, Front int }

// trainOf returns the file of a train, "train1" to "train40"; nil for another name.
func trainOf(name string) []byte {
	cars, _ := strconv.Atoi(strings.TrimPrefix(name, "train"))
	t := train{cars}
	if cars < 1 || cars > mostCars || t.name() != name {
		return nil
	}
	var b bytes.Buffer
	if err := template.Must(template.New("train").Parse(trainText)).Execute(&b, t); err != nil {
		panic("plants: the text of the trains cannot be filled in")
	}
	return b.Bytes()
}

func (t train) name() string { return fmt.Sprintf("train%d", t.Cars) }

func (t train) Freedoms() int { return 17 * t.Cars }

func (t train) Wheelsets() int { return 4 * t.Cars }

// Count returns the number of cars as a word up to twelve, else in digits.
func (t train) Count() string {
	words := strings.Fields("One Two Three Four Five Six Seven Eight Nine Ten Eleven Twelve")
	if t.Cars <= len(words) {
		return words[t.Cars-1]
	}
	return fmt.Sprint(t.Cars)
}

// Pull returns the force of the locomotive, N, which keeps the chains within their travel.
func (t train) Pull() int { return min(200000, 100000*((t.Cars+2)/3)) }

func (t train) Each() (list []int) {
	for c := range t.Cars {
		list = append(list, c+1)
	}
	return list
}

func (t train) Couplers() (list []link) {
	for c := range t.Cars - 1 {
		list = append(list, link{c + 1, c + 2})
	}
	return list
}

// Brakes returns the brakes of all wheels. Only those of the first car lock their wheels.
func (t train) Brakes() (list []brake) {
	for behind := range t.Cars {
		force := 9000
		if behind == 0 {
			force = 22000
		}
		for w := range 4 {
			name := fmt.Sprintf("car%d.brake%d", t.Cars-behind, 4-w)
			list = append(list, brake{name, force, 4.5 + 0.3*float64(behind) + 0.05*float64(w)})
		}
	}

	return list
}

// At returns the time, s, that lies after seconds behind the begin of the brake.
func (b brake) At(after float64) string { return fmt.Sprintf("%.2f", b.from+after) }
