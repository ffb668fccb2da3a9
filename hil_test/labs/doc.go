// Package labs runs the command on real CAN stacks and holds it against witnesses that
// share no code with it: candump, python-can, tshark, the kernel's own counters. It does
// not test the realistic network of package proof, nor the installation.
//
// The tests named TestLab... run in the lab vcan, those named TestLabPreemptRT... in the
// lab preempt_rt. They are skipped with a reason where the lab is missing; hil_test/all
// installs it and takes a skip for a failure.
package labs
