package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"
)

// chart is a plot of curves over two axes. What lies outside is cut off.
type chart struct {
	title, across, up string // up "": no marks on that axis
	x, y              axis
	curves            []curve
}

type axis struct {
	low, high float64
	log       bool
}

type curve struct {
	name, colour string
	width        float64 // pixels
	x, y         []float64
}

// Measures in pixels.
const (
	left, top, wide, high = 90.0, 50.0, 640.0, 420.0
	legend                = left + wide + 24
)

// place is where v lies on the axis, 0 to 1 inside.
func (a axis) place(v float64) float64 {
	if a.log {
		return math.Log(v/a.low) / math.Log(a.high/a.low)
	}
	return (v - a.low) / (a.high - a.low)
}

// marks are the numbers at an axis: decades, or about six round steps.
func (a axis) marks() (list []float64) {
	if a.log {
		low, high := int(math.Ceil(math.Log10(a.low)-1e-9)), int(math.Floor(math.Log10(a.high)+1e-9))
		for n := low; n <= high; n += 1 + (high-low)/9 {
			list = append(list, math.Pow10(n))
		}
		return list
	}
	step := math.Pow10(int(math.Floor(math.Log10((a.high - a.low) / 2))))
	for (a.high-a.low)/step > 8 {
		step *= 2
	}
	for n := math.Ceil(a.low/step - 1e-9); n*step <= a.high+1e-9*step; n++ {
		list = append(list, n*step+0) // never -0
	}
	return list
}

func (c *chart) svg() []byte {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`<svg xmlns="http://www.w3.org/2000/svg" width="1080" height="540" viewBox="0 0 1080 540" font-family="sans-serif" font-size="12">`)
	p(`<rect width="100%%" height="100%%" fill="#ffffff"/>`)
	p(`<clipPath id="inside"><rect x="%g" y="%g" width="%g" height="%g"/></clipPath>`, left, top, wide, high)
	p(`<text x="%g" y="28" font-size="15" font-weight="bold">%s</text>`, left, html.EscapeString(c.title))
	for _, v := range c.x.marks() {
		x := left + wide*c.x.place(v)
		p(`<path d="M%.1f %gv%g" stroke="#dddddd"/><text x="%.1f" y="%g" text-anchor="middle">%.4g</text>`, x, top, high, x, top+high+18, v)
	}
	for _, v := range c.y.marks() {
		if c.up == "" {
			break
		}
		y := top + high*(1-c.y.place(v))
		p(`<path d="M%g %.1fh%g" stroke="#dddddd"/><text x="%g" y="%.1f" text-anchor="end">%.4g</text>`, left, y, wide, left-6, y+4, v)
	}
	p(`<rect x="%g" y="%g" width="%g" height="%g" fill="none" stroke="#000000"/>`, left, top, wide, high)
	p(`<text x="%g" y="%g" text-anchor="middle">%s</text>`, left+wide/2, top+high+40, html.EscapeString(c.across))
	p(`<text transform="translate(22 %g) rotate(-90)" text-anchor="middle">%s</text>`, top+high/2, html.EscapeString(c.up))
	for i, l := range c.curves {
		p(`<path d="%s" fill="none" stroke="%s" stroke-width="%g" clip-path="url(#inside)"/>`, c.path(l), l.colour, l.width)
		y := top + 8 + 20*float64(i)
		p(`<path d="M%g %gh26" stroke="%s" stroke-width="%g"/><text x="%g" y="%g">%s</text>`, legend, y, l.colour, min(max(l.width, 2), 6), legend+34, y+4, html.EscapeString(l.name))
	}
	p(`</svg>`)
	return b.Bytes()
}

// path is the outline of a curve; it is broken where there is no number, and kept
// within a plot's size of the plot.
func (c *chart) path(l curve) string {
	var b strings.Builder
	next := "M"
	for i := range l.x {
		x, y := c.x.place(l.x[i]), c.y.place(l.y[i])
		if math.IsNaN(x) || math.IsNaN(y) {
			next = "M"
			continue
		}
		x, y = min(max(x, -1), 2), min(max(y, -1), 2)
		fmt.Fprintf(&b, "%s%.1f %.1f", next, left+wide*x, top+high*(1-y))
		next = "L"
	}
	return b.String()
}
