// Package labs owns the tests of the command on real CAN stacks. It compares the command with
// programs that share no code with it: candump, python-can, tshark, the counters of the kernel. It
// does not test the realistic network of package proof, nor the installation.
//
// Tests named TestLab... run in the lab vcan, those named TestLabPreemptRT... in the lab
// preempt_rt. Without the lab they are skipped with a reason. hil_test/all installs the labs and
// counts a skipped test as failed.
package labs
