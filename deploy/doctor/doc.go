// Package doctor owns the checks whether a host is fit for a loop, and the changes that correct them.
// Examine checks the host, NewPlan lists the settings of the running kernel to change, Plan.Apply
// changes them, Undo restores them. The plan shows each change before it is made.
//
// The package writes only these settings and the file for Undo. It does not write the kernel's
// command line or the boot loader. Package latency measures, for the check "timer" too; package
// hostinfo reads the host's files that other packages need, too.
//
// Reading order: doctor.go (Examine, Check), then the checks: kernel.go, cpu.go, threads.go,
// irq.go, rights.go, tracing.go, can.go. text.go prints. Then the changes: change.go (Setting), fix.go (Plan),
// undo.go, fix_text.go, and boot.go (the kernel's command line).
package doctor
