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
	"lockstep/rt/host"
	"lockstep/rt/soak"
)

// certifying is the command line of certify.
type certifying struct {
	certify.Measurement
	out, old, now string // files: to write, to compare with, the other one
	length        time.Duration
	given         map[string]bool // flags
}

func defineCertify(a *args) func() error {
	c := &certifying{given: map[string]bool{}}
	length := a.span("for 1h", time.Hour, "how long, 10s at least (default 1h); less than 10m is not representative")
	a.StringVar(&c.out, "o FILE.html", "", "write the certificate to this FILE.html, and FILE.json beside it")
	a.StringVar(&c.old, "compare OLD.json", "", "say what changed since this certificate, OLD.json: in NEW.json, or in one that is measured now as the old one was")
	a.hostFlags(&c.Bus, &c.BestEffort)
	a.loadFlags(&c.UnitBus, &c.Request.Load)
	a.StringVar(&c.Kernel, "kernel table|generated|FILE", "table", "what ticks: table, generated, or a target executable")

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

// read reads what the command line asks for.
func (c *certifying) read(a *args) error {
	a.Visit(func(f *flag.Flag) { c.given[f.Name] = true })
	if len(a.names) == 1 && c.old != "" && strings.HasSuffix(a.names[0], ".json") {
		c.now = a.names[0]
		for name := range c.given {
			if name != "compare" {
				return usageError{fmt.Sprintf("certify: -%s is of a measurement; two certificates are compared as they are", name)}
			}
		}

		return nil
	}

	c.Bench = demo
	if len(a.names) == 1 {
		c.Bench, c.given["bench"] = a.names[0], true
	}

	return c.check()
}

func (c *certifying) check() error {
	switch {
	case c.out == "" && c.old == "":
		return usageError{"certify: -o FILE.html is wanted: where the certificate is written"}
	case c.length < soak.Shortest:
		return usageError{fmt.Sprintf("certify: -for %v: at least %v are needed", c.length, soak.Shortest)}
	}

	return nil
}

// readCertificate reads one from a file.
func readCertificate(name string) (*certify.Certificate, error) {
	const most = 64 << 20 // bytes; one has a few MB at most
	info, err := os.Stat(name)
	if err == nil && info.Size() > most {
		err = fmt.Errorf("%s has %d bytes: it is no certificate", name, info.Size())
	}
	if err != nil {
		return nil, fmt.Errorf("certify: %w", err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("certify: %w", err)
	}
	return certify.Read(name, text)
}

// like takes over what an older certificate was asked for, where the command line does
// not say otherwise.
func (c *certifying) like(old *certify.Certificate) {
	was := old.Request
	for flag, take := range map[string]func(){
		"bench":      func() { c.Bench = was.Bench },
		"for":        func() { c.length = time.Duration(was.ForNs) },
		"bus":        func() { c.Bus = was.Bus },
		"unitbus":    func() { c.UnitBus = was.UnitBus },
		"besteffort": func() { c.BestEffort = was.BestEffort },
		"kernel":     func() { c.Kernel = was.Kernel },
		"load":       func() { c.Request.Load = was.Load },
	} {
		if !c.given[flag] {
			take()
		}
	}

	if c.out == "" {
		c.out = strings.TrimSuffix(c.old, ".json") + time.Now().UTC().Format("-20060102-150405") + ".html"
	}
}

// measure makes a certificate, and compares it with an old one if there is one.
func (c *certifying) measure(old *certify.Certificate) error {
	if old != nil {
		c.like(old)
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
	c.Begin = untilThen(files)
	made, err := c.Measure()
	if made == nil {
		return err
	}
	if e := files.Write(made); e != nil {
		return &host.Exit{Code: 1, Err: errors.Join(e, err)}
	}
	made.Text(os.Stdout, files)
	if old != nil {
		err = errors.Join(err, compareCertificates(old, made))
	}
	return exit1(err)
}

// untilThen lets a signal end the command at once, without a trace, until what it returns
// is called.
func untilThen(files *certify.Files) (then func()) {
	signals, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case <-signals:
			files.Close()
			os.Exit(printError(&host.Exit{Code: 1, Err: errors.New("certify: interrupted before the run, nothing is written")}))
		case <-over:
		}
	}()

	return func() {
		signal.Stop(signals)
		close(over)
	}
}

// compareCertificates says what changed; that something is worse is an error.
func compareCertificates(old, now *certify.Certificate) error {
	c, err := certify.Compare(old, now)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s, %s\nthen %s, %s\n\n", old.Run.Bench, old.Made, now.Run.Bench, now.Made)
	c.Text(os.Stdout)
	var worse []error
	for _, f := range c.Worse() {
		worse = append(worse, fmt.Errorf("certify: worse: %s", f.Name))
	}
	return exit1(errors.Join(worse...))
}
