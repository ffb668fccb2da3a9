/*
 * A ptrace() for user-mode Linux up to 6.1, on processors with tile registers (AMX).
 *
 * User-mode Linux keeps the register state of a process in an area that ends before the tile
 * registers. The host returns a part of the state, but accepts only a complete one. Without this
 * function user-mode Linux ends at its first process. The function appends empty tile registers
 * and marks them as empty, as in every program that has not requested them from the kernel.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define XSTATE ((void *)0x202) /* NT_X86_XSTATE of elf.h */
#define PARTS 512              /* offset of the bit mask of the parts that are not empty, bytes */
#define TILES (UINT64_C(3) << 17)

static long set_state(long pid, const struct iovec *given)
{
	static _Thread_local char whole[1 << 15];
	struct iovec all = {whole, sizeof whole};
	uint64_t parts;

	if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, XSTATE, &all) != 0 || all.iov_len <= given->iov_len) {
		return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, XSTATE, given);
	}
	memset(whole, 0, sizeof whole);
	memcpy(whole, given->iov_base, given->iov_len);
	memcpy(&parts, whole + PARTS, sizeof parts);
	parts &= ~TILES;
	memcpy(whole + PARTS, &parts, sizeof parts);
	return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, XSTATE, &all);
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list list;
	va_start(list, request);
	long pid = va_arg(list, long);
	void *at = va_arg(list, void *);
	void *data = va_arg(list, void *);
	va_end(list);

	if (request == PTRACE_SETREGSET && at == XSTATE) {
		return set_state(pid, data);
	}
	if (request >= PTRACE_PEEKTEXT && request <= PTRACE_PEEKUSER) { /* the word is the result */
		long word;
		if (syscall(SYS_ptrace, request, pid, at, &word) < 0) {
			return -1;
		}
		errno = 0;
		return word;
	}
	return syscall(SYS_ptrace, request, pid, at, data);
}
