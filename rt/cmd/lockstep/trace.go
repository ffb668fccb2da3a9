package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/plot"
	"lockstep/rt/trace"
)

// terminalWidth is the width of a diagram for an output that is no terminal, columns.
const terminalWidth = 100

func definePlot(a *args) func() error {
	file := a.output("o FILE", "write the diagram to this file, .svg, .png or .pdf; default: draw it in the terminal")
	window := a.window()
	unit := a.String("unit UNIT", "", "unit of all signals that it fits, such as rpm")

	return func() error {
		if err := checkSheet("plot", *file); err != nil {
			return err
		}
		v := window()
		v.Unit = *unit
		line := interruptible("plot")
		v.Progress = line.BeginReading(a.operands[0])
		t, err := trace.Open("plot", a.operands[0], v, a.operands[1:]...)
		line.End()
		if err != nil {
			return err
		}
		warnOfGaps(t)
		if t, err = t.Window(v); err != nil {
			return fmt.Errorf("plot: %w", err)
		}
		if *file == "" {
			width := stdout.Width()
			if width == 0 {
				width = terminalWidth
			}
			_, err := fmt.Fprint(plainOut, t.Blocks(width))
			return err
		}
		return saveSheet("plot", *file, t.Sheet())
	}
}

// window declares the flags of a part of a run.
func (a *args) window() func() trace.View {
	from := a.instant("from 1.5s", "begin of the part of the run; default: that of the run")
	to := a.duration("to 2s", 0, "end of the part of the run; default: that of the run")
	return func() trace.View {
		v := trace.View{From: from.Seconds(), To: math.Inf(1)}
		if *to > 0 {
			v.To = to.Seconds()
		}
		return v
	}
}

// warnOfGaps names what a damaged record lacks.
func warnOfGaps(t *trace.Trace) {
	if t.Gaps == nil {
		return
	}
	for line := range strings.Lines(t.Gaps.Error()) {
		fmt.Fprintln(host.Fold(os.Stderr), "lockstep: warning:", strings.TrimSpace(line))
	}
}

// checkSheet refuses the name of a diagram that no format has, before the work; "": no diagram is wanted.
func checkSheet(command, name string) error {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".svg", ".png", ".pdf":
		return nil
	}
	if name == "" {
		return nil
	}
	return usageError{fmt.Sprintf("%s: -o %s: name a file .svg, .png or .pdf", command, name)}
}

// saveSheet writes a diagram in the format that the name of the file tells.
func saveSheet(command, name string, s *plot.Sheet) error {
	var content []byte
	var err error
	kind := strings.ToLower(strings.TrimPrefix(filepath.Ext(name), "."))
	switch kind {
	case "svg":
		content = s.SVG()
	case "png":
		content, err = s.PNG()
	case "pdf":
		content, err = s.PDF()
	}
	if err != nil {
		return err
	}
	f, err := bench.CreateResult(name, 0, map[string]string{"svg": "XML", "png": "picture", "pdf": "picture"}[kind])
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return f.Save(func(to io.Writer) error { _, err := to.Write(content); return err })
}

func defineDiff(a *args) func() error {
	var tolerances []string
	a.Func("tol", "`NAME=1rpm`: largest deviation of a signal, or of all that a pattern such as *.w matches; may be repeated. "+
		"Without it every signal must be equal; with it only the named ones are judged", func(text string) error {
		tolerances = append(tolerances, text)
		return nil
	})
	trigger := a.String("trigger CONDITION", "", "align the runs not by time but where a condition is first true, such as 'J1.w > 100 rpm'")
	verdict := a.output("junit FILE.xml", "write the verdict to this file, as JUnit XML")
	window := a.window()
	file := a.output("o FILE", "write a diagram of the signal that deviates most to this file, .svg, .png or .pdf")

	return func() error {
		if err := checkSheet("diff", *file); err != nil {
			return err
		}
		var runs [2]*trace.Trace
		line := interruptible("diff")
		for i, name := range a.operands {
			v := window()
			v.Progress = line.BeginReading(name)
			t, err := trace.Open("diff", name, v)
			line.End()
			if err != nil {
				return err
			}
			warnOfGaps(t)
			if runs[i], err = t.Window(window()); err != nil {
				return fmt.Errorf("diff: %w", err)
			}
		}
		c, err := trace.Compare(runs[0], runs[1], *trigger, tolerances)
		if err != nil {
			return fmt.Errorf("diff: %w", err)
		}
		if err := c.Write(stdout); err != nil {
			return err
		}
		if *file != "" {
			if err := saveSheet("diff", *file, c.Worst()); err != nil {
				return err
			}
		}
		if *verdict != "" {
			f, err := bench.CreateResult(*verdict, 0, "XML")
			if err != nil {
				return fmt.Errorf("diff: %w", err)
			}
			if err := f.Save(c.JUnit().Write); err != nil {
				return err
			}
		}
		if err := c.Err(); err != nil {
			return exit1(fmt.Errorf("diff: %w", err))
		}
		return nil
	}
}
