/* lockstep.h: a control unit as a program in C, version 1 of the protocol. It needs Linux on a
 * little-endian machine. `lockstep help exec` describes the protocol. */
#ifndef LOCKSTEP_H
#define LOCKSTEP_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>

enum { LOCKSTEP_HELLO = 1, LOCKSTEP_BUS, LOCKSTEP_START, LOCKSTEP_FRAME, LOCKSTEP_GO, LOCKSTEP_DONE };

/* A message of the socket, 80 bytes; of kind LOCKSTEP_FRAME a frame. */
struct lockstep_frame {
	uint8_t kind, bus; /* bus: index in struct lockstep */
	uint8_t flags;     /* CAN FD: 4, with bit rate switch 5; classic: 0 */
	uint8_t length;    /* bytes of data */
	uint32_t id;       /* extended: with 0x80000000 */
	int64_t time;      /* ns since the start of the run; lockstep_send sets it to now */
	uint8_t data[64];
};

struct lockstep {
	int fd;
	int stepped;         /* virtual time */
	int buses;           /* number of buses */
	char bus[16][65];    /* their names; "": a bus that is not in the socket */
	int64_t period, now; /* ns; now: since the start of the run */
	int64_t start, go;   /* CLOCK_MONOTONIC of the start; grid point for which the bench waits, 0: none */
};

static inline int lockstep_put(struct lockstep *u, struct lockstep_frame *m, int kind)
{
	m->kind = (uint8_t)kind;
	return send(u->fd, m, sizeof *m, MSG_NOSIGNAL) == (ssize_t)sizeof *m ? 1 : -1;
}

static inline int lockstep_get(struct lockstep *u, struct lockstep_frame *m)
{
	return recv(u->fd, m, sizeof *m, 0) == (ssize_t)sizeof *m ? 1 : -1;
}

/* lockstep_open connects to the bench and waits for the start of the run. 1: connected, -1: not. */
static inline int lockstep_open(struct lockstep *u)
{
	struct lockstep_frame m, hello = {.id = 1};
	const char *fd = getenv("LOCKSTEP_FD");
	memset(u, 0, sizeof *u);
	if (!fd || (u->fd = atoi(fd), lockstep_put(u, &hello, LOCKSTEP_HELLO)) < 0)
		return -1;
	while (lockstep_get(u, &m) > 0) {
		if (m.kind == LOCKSTEP_HELLO)
			u->stepped = m.flags & 1, u->buses = m.length, u->period = m.time;
		if (m.kind == LOCKSTEP_BUS)
			memcpy(u->bus[m.bus % 16], m.data, sizeof m.data);
		if (m.kind == LOCKSTEP_START)
			return u->start = m.time, 1;
	}
	return -1;
}

/* lockstep_send sends a frame: 1, or -1 when the run has ended. */
static inline int lockstep_send(struct lockstep *u, struct lockstep_frame *f)
{
	return f->time = u->now, lockstep_put(u, f, LOCKSTEP_FRAME);
}

/* lockstep_receive returns 1 with the next frame, 0 at the instant until, -1 when the run has ended.
 * In virtual time the bench waits whenever the program does anything else. */
static inline int lockstep_receive(struct lockstep *u, struct lockstep_frame *f, int64_t until)
{
	for (;;) {
		struct lockstep_frame done = {.time = u->go};
		if (u->go && until < u->go)
			return u->now = until > u->now ? until : u->now, 0;
		if (u->go && (u->now = u->go, u->go = 0, lockstep_put(u, &done, LOCKSTEP_DONE)) < 0)
			return -1;
		if (!u->stepped) {
			struct timespec t;
			fd_set set;
			clock_gettime(CLOCK_MONOTONIC, &t);
			u->now = t.tv_sec * 1000000000LL + t.tv_nsec - u->start;
			int64_t left = until > u->now ? until - u->now : 0;
			t = (struct timespec){.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
			FD_ZERO(&set);
			FD_SET(u->fd, &set);
			if (pselect(u->fd + 1, &set, NULL, NULL, &t, NULL) == 0)
				return u->now = until > u->now ? until : u->now, 0;
		}
		if (lockstep_get(u, f) < 0)
			return -1;
		if (f->kind == LOCKSTEP_FRAME)
			return u->now = f->time > u->now ? f->time : u->now, 1;
		if (f->kind == LOCKSTEP_GO)
			u->go = f->time;
	}
}

#endif
