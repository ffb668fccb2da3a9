// Package doctor owns the judgement whether a host is fit for a loop, and the settings that make
// it fitter. Examine checks the host, NewPlan lists the settings of the running kernel that would
// help, Plan.Apply changes them, Undo restores them. Each change is shown before it is made.
//
// It writes nothing else: no file on a disk but the one for Undo, no command line of a kernel, no
// boot loader. It does not measure (package latency). It does not read the host's files by itself
// where others need them too (package hostinfo).
//
// Reading order: doctor.go (Examine, Check), then the checks: kernel.go, cpu.go, threads.go,
// irq.go, rights.go, can.go. text.go prints. Then the changes: change.go (Setting), fix.go (Plan),
// undo.go, fix_text.go, and boot.go (the kernel's command line).
package doctor
