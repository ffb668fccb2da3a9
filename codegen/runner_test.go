package codegen

// runnerText is a program that executes the commands of every generated kernel, or times it.
const runnerText = `package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"time"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func read(name string) []float64 {
	data, err := os.ReadFile(name)
	check(err)
	out := make([]float64, len(data)/8)
	for i := range out {
		out[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return out
}

func write(name string, list []float64) {
	data := make([]byte, 8*len(list))
	for i, v := range list {
		binary.LittleEndian.PutUint64(data[8*i:], math.Float64bits(v))
	}
	check(os.WriteFile(name, data, 0o666))
}

func main() {
	if len(os.Args) > 1 {
		timeAll()
		return
	}
%s}

// countPanics returns how many calls with the index of no input panic.
func countPanics(drive func(int, bool), driven func(int) bool, own func(int) float64, m int) (n float64) {
	for _, i := range []int{-1, m, 1 << 40} {
		for _, call := range []func(){func() { drive(i, true) }, func() { driven(i) }, func() { own(i) }} {
			func() {
				defer func() {
					if recover() != nil {
						n++
					}
				}()
				call()
			}()
		}
	}
	return n
}

// change announces changes in a step of length h from its inputs, as in same_test.go.
func change(k any, u []float64, tick int, h float64) {
	c, ok := k.(interface {
		Change(i int, at, value, slope float64)
	})
	if !ok {
		return
	}
	for n := range tick %% 8 {
		i, at := (tick+3*n)%%len(u), h*float64((tick*13+n*29)%%31)/30
		value, slope := u[(i+n)%%len(u)], 0.0
		if i%%2 == 0 {
			slope = float64(float64(n%%3) * (u[i] - value)) / h
		}
		c.Change(i, at, value, slope)
	}
}

// stepper is a kernel.
type stepper interface {
	Step(y, u []float64)
	Reset()
	Dims() (m, p int)
}

// timeTicks prints the time of a tick, ns, with constant inputs and with the commanded inputs.
func timeTicks(name string, k stepper) {
	m, p := k.Dims()
	y, u := make([]float64, p), make([]float64, m)
	rows := read(name + ".in")
	copy(u, rows[3:])
	quiet, busy := time.Hour, time.Hour
	for range 7 {
		k.Reset()
		at := time.Now()
		for range 2000 {
			k.Step(y, u)
		}
		quiet = min(quiet, time.Since(at))
		k.Reset()
		at = time.Now()
		for r := rows; len(r) > 0; r = r[3+m:] {
			k.Step(y, r[3:3+m])
		}
		busy = min(busy, time.Since(at))
	}
	fmt.Println(name, float64(quiet.Nanoseconds())/2000, float64(busy.Nanoseconds())/float64(len(rows)/(3+m)))
}

func timeAll() {
%s}
`

const followText = `	func() {
		k := %[1]s.New()
		m, p := k.Dims()
		y := make([]float64, p)
		rows := read("%[1]s.in")
		k.Output(y)
		out := append([]float64{float64(p + 1)}, y...)
		out = append(out, countPanics(k.Drive, k.Driven, k.Own, m))
		for tick := 0; len(rows) > 0; tick, rows = tick+1, rows[3+m:] {
			switch rows[0] {
			case 1:
				k.Reset()
			case 2:
				k.Output(y)
			}
			answer := 0.0
			if i := int(rows[1]); i >= 0 {
				k.Drive(i, rows[2] == 1)
				if answer = k.Own(i); k.Driven(i) {
					answer++
				}
			}
			change(k, rows[3:3+m], tick, float64(%[1]s.PeriodNs)*1e-9)
			k.Step(y, rows[3:3+m])
			events := k.Events()
			out = append(out, float64(1+p+4*len(events)), answer)
			out = append(out, y...)
			for _, e := range events {
				out = append(out, e.Time, float64(e.Friction), float64(e.From), float64(e.To))
			}
		}
		write("%[1]s.out", out)
	}()
`
