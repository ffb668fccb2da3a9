package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"lockstep/deploy/certify"
	"lockstep/io/inputfile"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/progress"
	"lockstep/rt/soak"
)

// certifyArgs is the command line of certify.
type certifyArgs struct {
	certify.Measurement
	out      string // file to write; "": none
	old, now string // certificates to compare; now "": a new measurement
	length   time.Duration
	given    map[string]bool // names of the flags given
}

func defineCertify(a *args) func() error {
	c := &certifyArgs{given: map[string]bool{}}
	length := a.duration("for 1h", time.Hour, "duration, at least 10s (default 1h); less than 10m is not representative")
	a.outputVar(&c.out, "o FILE.html", "write the certificate to FILE.html and FILE.json")
	a.StringVar(&c.old, "compare OLD.json", "",
		"print what changed from the certificate OLD.json to NEW.json, or to a new measurement with the "+
			"settings of OLD.json")
	a.hostFlags(&c.Bus, &c.BestEffort)
	a.loadFlags(&c.UnitBus, &c.Request.Load)
	a.StringVar(&c.Kernel, "kernel table|generated|FILE", "table",
		"kernel in use: table, generated, or a target executable")

	return func() error {
		c.length = *length
		if err := c.read(a); err != nil {
			return err
		}
		var old *certify.Certificate
		var err error
		if c.old != "" {
			if old, err = readCertificate(c.old); err != nil {
				return err
			}
		}

		if c.now != "" {
			now, err := readCertificate(c.now)
			if err != nil {
				return err
			}
			return compareCertificates(old, now)
		}

		return c.measure(old)
	}
}

// read takes over the arguments of the command line.
func (c *certifyArgs) read(a *args) error {
	a.Visit(func(f *flag.Flag) { c.given[f.Name] = true })
	if len(a.operands) == 1 && c.old != "" && strings.HasSuffix(a.operands[0], ".json") {
		c.now = a.operands[0]
		for name := range c.given {
			if name != "compare" {
				return usageError{fmt.Sprintf("certify: -%s needs a measurement; two certificates are compared as they are", name)}
			}
		}

		return nil
	}

	c.Bench = demo
	if len(a.operands) == 1 {
		c.Bench, c.given["bench"] = a.operands[0], true
	}

	return c.check()
}

func (c *certifyArgs) check() error {
	switch {
	case c.out == "" && c.old == "":
		return usageError{"certify: -o FILE.html is missing: the file of the certificate"}
	case c.length < soak.MinDuration:
		return usageError{fmt.Sprintf("certify: -for %v: at least %v are needed", c.length, soak.MinDuration)}
	}

	return nil
}

// readCertificate reads a certificate from a file.
func readCertificate(name string) (*certify.Certificate, error) {
	if err := bench.CheckFile("certify", name, "certificate"); err != nil {
		return nil, err
	}
	text, err := inputfile.Read(name, inputfile.Certificate)
	if err != nil {
		return nil, fmt.Errorf("certify: %w", err)
	}
	return certify.Read(name, text)
}

// reuseSettings takes over the settings of an older certificate that the command line does not set.
func (c *certifyArgs) reuseSettings(old *certify.Certificate) {
	was := old.Request
	for flag, set := range map[string]func(){
		"bench":      func() { c.Bench = was.Bench },
		"for":        func() { c.length = time.Duration(was.ForNs) },
		"bus":        func() { c.Bus = was.Bus },
		"unitbus":    func() { c.UnitBus = was.UnitBus },
		"besteffort": func() { c.BestEffort = was.BestEffort },
		"kernel":     func() { c.Kernel = was.Kernel },
		"load":       func() { c.Request.Load = was.Load },
	} {
		if !c.given[flag] {
			set()
		}
	}

	if c.out == "" {
		c.out = strings.TrimSuffix(c.old, ".json") + time.Now().UTC().Format("-20060102-150405") + ".html"
	}
}

// measure measures and writes a certificate, and compares it with old unless old is nil.
func (c *certifyArgs) measure(old *certify.Certificate) error {
	if old != nil {
		c.reuseSettings(old)
	}
	c.ForNs, c.Out, c.Choose = int64(c.length), os.Stdout, kernelOf(c.Kernel)
	if err := c.MakeAbsolute(); err != nil {
		return err
	}
	if c.Request.Load {
		c.Measurement.Load = startLoad
	}
	files, err := certify.Create(c.out)
	if err != nil {
		return err
	}
	defer files.Close()
	c.Progress = progressLine("certify")
	c.Begin = exitOnSignal(files, c.Progress)
	made, err := c.Measure()
	if made == nil {
		return err
	}
	if e := files.Write(made); e != nil {
		return &host.Exit{Code: 1, Err: errors.Join(e, err)}
	}
	made.Text(stdout, files)
	if old != nil {
		err = errors.Join(err, compareCertificates(old, made))
	}
	return exit1(err)
}

// exitOnSignal lets a signal end the command and remove its files, until the returned function is
// called.
func exitOnSignal(files *certify.Files, line *progress.Line) (stop func()) {
	signals, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case <-signals:
			files.Close()
			line.Print(func() {
				os.Exit(printError(&host.Exit{Code: 1, Err: errors.New("certify: interrupted before the run, nothing was written")}))
			})
		case <-over:
		}
	}()

	return func() {
		signal.Stop(signals)
		close(over)
	}
}

// compareCertificates prints the differences; a worse figure is an error.
func compareCertificates(old, now *certify.Certificate) error {
	c, err := certify.Compare(old, now)
	if err != nil {
		return err
	}
	out := stdout
	fmt.Fprintf(out, "\n%s, %s\nthen %s, %s\n\n", old.Run.Bench, old.Made, now.Run.Bench, now.Made)
	c.Text(out)
	var worse []error
	for _, f := range c.Worse() {
		worse = append(worse, fmt.Errorf("certify: worse: %s", f.Name))
	}
	return exit1(errors.Join(worse...))
}
