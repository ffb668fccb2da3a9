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

// mostCars is the longest train there is.
const mostCars = 40

// listed are the trains that List names.
var listed = []int{3, 20}

// train is what trainText is filled with: so many cars of rail17 in a row.
type train struct{ Cars int }

// brake is one of car Cars−Behind, which act one after the other from the front.
type brake struct {
	Name  string
	Force int     // N, of the first braking
	from  float64 // s
}

type link struct{ Rear, Front int }

// trainOf returns the train of that name, "train1" to "train40"; nil for another name.
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

// Count is the number of cars as it is written.
func (t train) Count() string {
	words := strings.Fields("One Two Three Four Five Six Seven Eight Nine Ten Eleven Twelve")
	if t.Cars <= len(words) {
		return words[t.Cars-1]
	}
	return fmt.Sprint(t.Cars)
}

// Pull is the force of the locomotive, N: what chains bear within their travel.
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

// Brakes lock the wheels of the first car alone.
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

// At is the time so much after the brake begins to act, s.
func (b brake) At(after float64) string { return fmt.Sprintf("%.2f", b.from+after) }
