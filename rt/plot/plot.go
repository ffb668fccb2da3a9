// Package plot owns the style of lockstep's diagrams: curves and histograms over two axes, dark on
// white, as SVG, PNG and PDF. gonum/plot draws them. The package does not know the meaning of the curves: callers
// give their names and colours.
package plot

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"io"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	xfont "golang.org/x/image/font"
)

// Sheet is an image of charts and lines of text. Positions are px from its upper left corner.
type Sheet struct {
	Width, Height float64 // px
	Charts        []Chart
	Texts         []Text
}

// Text is a line of text on a sheet.
type Text struct {
	X, Y   float64 // left end of the base line, px
	Size   float64 // font size, px
	Bold   bool
	Colour string // "#rrggbb"; "": black
	Text   string
}

// Chart is a plot of curves, clipped to its axes.
type Chart struct {
	Left, Top, Width, Height float64 // area including axes and legend, px
	Title                    string
	X, Y                     Axis
	Curves                   []Curve
	Labels                   []Label
	Legend                   float64 // width of the legend at the right of the plot, px; 0: no legend
}

// Axis is the horizontal or vertical axis of a chart. Low < High; a logarithmic axis has Low > 0.
type Axis struct {
	Name      string
	Low, High float64 // range, in the unit of the curves
	Log       bool
	Format    func(v float64) string // format of a tick label; nil: %.4g
	Hidden    bool                   // no ticks and labels
}

// Curve is a line through points. A point that is not finite interrupts the line.
type Curve struct {
	Name, Note string    // entry in the legend; Note is a second line
	Colour     string    // "#rrggbb"
	Width      float64   // line width, px
	Dash       []float64 // lengths of dashes and gaps, px; nil: a solid line
	Fill       float64   // opacity of the area below the curve, 0 to 1
	X, Y       []float64 // points, len(X) == len(Y)
}

// Label is a text at a point of a chart. A point outside the axes is moved to their border.
type Label struct {
	X, Y    float64 // position in the units of the axes
	Colour  string
	Text    string
	Before  bool // text ends at the point; otherwise it begins there
	Upright bool // text is rotated to read upwards
}

// Bar is a class of a histogram: N values between From and To.
type Bar struct{ From, To, N float64 }

// Outline returns the curve of a histogram, drawn down to floor. It is interrupted between bars
// that do not touch.
func Outline(bars []Bar, floor float64) (x, y []float64) {
	last := math.NaN()
	for i, b := range bars {
		if b.From != last {
			x, y = append(x, math.NaN(), b.From), append(y, math.NaN(), floor)
		}
		x, y = append(x, b.From, b.To), append(y, b.N, b.N)

		if last = b.To; i+1 == len(bars) || bars[i+1].From != last {
			x, y = append(x, last), append(y, floor)
		}
	}

	return x, y
}

// SVG returns the chart as an SVG file.
func (c Chart) SVG() []byte { return c.sheet().SVG() }

// Inline returns the chart as an svg element for an HTML page. label is its description for screen
// readers.
func (c Chart) Inline(label string) string {
	return c.sheet().draw(fmt.Sprintf(`role="img" aria-label="%s"`, html.EscapeString(label)))
}

func (c Chart) sheet() *Sheet {
	return &Sheet{Width: c.Left + c.Width, Height: c.Top + c.Height, Charts: []Chart{c}}
}

// SVG returns the sheet as an SVG file.
func (s *Sheet) SVG() []byte {
	attributes := fmt.Sprintf(`xmlns="http://www.w3.org/2000/svg" width="%g" height="%g"`, s.Width, s.Height)
	return []byte(s.draw(attributes))
}

// PNG returns the sheet as a PNG file, with two pixels per px.
func (s *Sheet) PNG() ([]byte, error) {
	canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(vg.Length(s.Width), vg.Length(s.Height)), vgimg.UseDPI(144))}
	s.paint(canvas)
	return written(canvas)
}

// PDF returns the sheet as a PDF file of one page.
func (s *Sheet) PDF() ([]byte, error) {
	canvas := vgpdf.New(vg.Length(s.Width), vg.Length(s.Height))
	s.paint(canvas)
	return written(canvas)
}

func written(canvas io.WriterTo) ([]byte, error) {
	var out bytes.Buffer
	_, err := canvas.WriteTo(&out)
	return out.Bytes(), err
}

// draw returns the sheet as an svg element with the given attributes.
func (s *Sheet) draw(attributes string) string {
	canvas := vgsvg.New(vg.Length(s.Width), vg.Length(s.Height))
	s.paint(canvas)
	var out bytes.Buffer
	_, _ = canvas.WriteTo(&out) // writing to a buffer does not fail
	_, body, _ := strings.Cut(out.String(), `xlink">`)
	body = strings.NewReplacer("Liberation Sans;", "Liberation Sans,Arial,sans-serif;", "\t", "").Replace(body)
	return fmt.Sprintf("<svg viewBox=\"0 0 %g %g\" %s>%s", s.Width, s.Height, attributes, body)
}

// paint draws the sheet on a canvas of its size.
func (s *Sheet) paint(canvas vg.CanvasSizer) {
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Path())

	for _, t := range s.Texts {
		at := vg.Point{X: vg.Length(t.X), Y: all.Max.Y - vg.Length(t.Y)}
		all.FillText(style(t.Size, t.Bold, t.Colour), at, t.Text)
	}

	for _, c := range s.Charts {
		right, bottom := s.Width-c.Left-c.Width, s.Height-c.Top-c.Height
		c.draw(draw.Crop(all, vg.Length(c.Left), vg.Length(-right), vg.Length(bottom), vg.Length(-c.Top)))
	}
}

// draw draws the chart on a canvas of its size.
func (c *Chart) draw(canvas draw.Canvas) {
	p := plot.New()
	p.Title.Text = c.Title
	p.Title.TextStyle.Font = letters(14, true)
	p.Title.Padding = 8
	p.BackgroundColor = nil
	c.X.set(&p.X)
	c.Y.set(&p.Y)

	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = colour("#dddddd", 1), colour("#dddddd", 1)
	grid.Horizontal.Width, grid.Vertical.Width = 0.7, 0.7
	p.Add(grid)

	for i := range c.Curves {
		c.Curves[i].add(p, &c.X, &c.Y)
	}
	labels := &plotter.Labels{}
	for _, l := range c.Labels {
		s := style(10, false, l.Colour)
		if s.YAlign = draw.YTop; l.Before {
			s.XAlign = draw.XRight
		}
		if l.Upright {
			s.Rotation, s.YAlign = math.Pi/2, draw.YCenter
		}
		labels.XYs = append(labels.XYs, plotter.XY{X: c.X.clamp(l.X, 0), Y: c.Y.clamp(l.Y, 0)})
		labels.Labels = append(labels.Labels, " "+l.Text+" ")
		labels.TextStyle = append(labels.TextStyle, s)
	}

	p.Add(labels)

	// Adding curves and labels widens the axes of gonum; the chart has fixed axes.
	p.X.Min, p.X.Max = c.X.at(c.X.Low), c.X.at(c.X.High)
	p.Y.Min, p.Y.Max = c.Y.at(c.Y.Low), c.Y.at(c.Y.High)
	p.Draw(draw.Crop(canvas, 4, -8-vg.Length(c.Legend), 4, -4))
	if c.Legend > 0 {
		c.drawLegend(draw.Crop(canvas, vg.Length(c.Width-c.Legend), 0, 0, -20))
	}
}

// set applies the style and the scale of a to an axis of gonum.
func (a Axis) set(to *plot.Axis) {
	to.Label.Text, to.Tick.Marker, to.Padding = a.Name, a, 0
	to.Label.TextStyle.Font, to.Tick.Label.Font = letters(12, false), letters(11, false)
	to.Label.Padding, to.Tick.Length = 4, 5
}

// Ticks implements plot.Ticker.
func (a Axis) Ticks(low, high float64) (ticks []plot.Tick) {
	switch {
	case a.Hidden:
		return nil
	case a.Log:
		ticks = plot.LogTicks{Prec: -1}.Ticks(a.Low*(1-1e-9), a.High) // LogTicks truncates the logarithm of Low
	default:
		ticks = plot.DefaultTicks{}.Ticks(low, high)
	}

	for i, t := range ticks {
		switch {
		case t.IsMinor():
		case a.Format != nil:
			ticks[i].Label = a.Format(t.Value)
		default:
			ticks[i].Label = fmt.Sprintf("%.4g", t.Value)
		}

		ticks[i].Value = a.at(t.Value)
	}

	return ticks
}

// at returns the position of v on the axis, log10(v) on a logarithmic one. The logarithmic scale of
// gonum fails at 0 and reserves the room of a name as on a linear axis.
func (a *Axis) at(v float64) float64 {
	if a.Log {
		return math.Log10(max(v, 1e-300))
	}
	return v
}

// clamp returns the position of v, limited to the axis and so many axis lengths around it.
func (a *Axis) clamp(v, lengths float64) float64 {
	low, high := a.at(a.Low), a.at(a.High)
	around := lengths * (high - low)
	return min(max(a.at(v), low-around), high+around)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// add adds the curve to a plot, as one line for each run of finite points.
func (l *Curve) add(p *plot.Plot, x, y *Axis) {
	var part plotter.XYs
	for i := 0; i <= len(l.X); i++ {
		if i < len(l.X) && finite(l.X[i]) && finite(l.Y[i]) {
			part = append(part, plotter.XY{X: x.clamp(l.X[i], 1), Y: y.clamp(l.Y[i], 1)})
			continue
		}

		if len(part) == 0 {
			continue
		}
		line := &plotter.Line{XYs: part, LineStyle: l.style()}
		if l.Fill > 0 {
			line.FillColor = colour(l.Colour, l.Fill)
		}
		p.Add(line)
		part = nil
	}
}

func (l *Curve) style() draw.LineStyle {
	s := draw.LineStyle{Color: colour(l.Colour, 1), Width: vg.Length(l.Width)}
	for _, d := range l.Dash {
		s.Dashes = append(s.Dashes, vg.Length(d))
	}
	return s
}

// drawLegend draws the names of the curves from the top of the canvas.
func (c *Chart) drawLegend(canvas draw.Canvas) {
	left, y := canvas.Min.X+16, canvas.Max.Y
	for i := range c.Curves {
		l := &c.Curves[i]
		if l.Name == "" {
			continue
		}
		line := l.style()
		line.Width = min(max(line.Width, 2), 6)
		canvas.StrokeLine2(line, left, y, left+26, y)
		canvas.FillText(style(12, l.Note != "", ""), vg.Point{X: left + 34, Y: y - 4}, l.Name)

		if y -= 20; l.Note != "" {
			canvas.FillText(style(11, false, ""), vg.Point{X: left, Y: y + 2}, l.Note)
			y -= 13
		}
	}
}

// letters returns the font of all texts in a size, px.
func letters(size float64, bold bool) font.Font {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(size)}
	if bold {
		f.Weight = xfont.WeightBold
	}
	return f
}

func style(size float64, bold bool, hex string) text.Style {
	return text.Style{Color: colour(hex, 1), Font: letters(size, bold), Handler: plot.DefaultTextHandler}
}

// colour parses "#rrggbb"; "" is black. The opacity is 0 to 1.
func colour(hex string, opacity float64) color.Color {
	c := color.NRGBA{A: uint8(255 * opacity)}
	_, _ = fmt.Sscanf(hex, "#%02x%02x%02x", &c.R, &c.G, &c.B)
	return c
}
