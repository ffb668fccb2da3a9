/* The process image of lockstep's io/wire, version 1: little-endian, no padding. */
#ifndef LOCKSTEP_WIRE_H
#define LOCKSTEP_WIRE_H

#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define WIRE_MAGIC 0x4950534cu
#define WIRE_VERSION 1
#define WIRE_SIZE 1064

struct wire_pwm {
	double duty;      /* 0 to 1 */
	double frequency; /* Hz */
};

/* States of the line of a sensor. */
enum { WIRE_WORKING, WIRE_OPEN, WIRE_SHORT_TO_GROUND, WIRE_SHORT_TO_SUPPLY };

struct wire_wheel {
	double speed;      /* rad/s */
	double accel;      /* rad/s^2 */
	int64_t next;      /* time of the next edge after tick, ns; INT64_MAX without an edge ahead */
	double period;     /* time between edges at speed, s; infinite at standstill */
	double pitch;      /* angle between edges, rad; 0: no wheel */
	uint64_t lost;     /* bit n: edge n, counted from the next one on, does not appear */
	uint32_t teeth;    /* edges per turn */
	uint32_t tooth;    /* number of the next edge, 0 to teeth - 1 */
	int32_t direction; /* +1 or -1 at the next edge; 0 without an edge ahead */
	uint16_t word;     /* data word of the AK protocol, bits 0 to 8 */
	uint8_t state;     /* WIRE_WORKING, ... */
	uint8_t reserved;  /* 0 */
};

struct wire_image {
	uint32_t magic;
	uint16_t version;
	uint16_t size;
	uint64_t counter; /* rises by 1 with each image; a box begins with 0 */
	int64_t tick;     /* time of the tick, or of the sample in the box's time, ns */
	int64_t age;      /* age of the values at tick, ns */
	uint64_t digital; /* bit n is channel n */
	double analog[32];
	struct wire_pwm pwm[16];
	struct wire_wheel wheel[8];
};

_Static_assert(sizeof(struct wire_image) == WIRE_SIZE, "the layout has padding");

/* wire_valid reports whether n bytes at m are an image of this version. */
static inline int wire_valid(const struct wire_image *m, int64_t n)
{
	return n == WIRE_SIZE && m->magic == WIRE_MAGIC && m->version == WIRE_VERSION && m->size == WIRE_SIZE;
}

/* wire_begin clears m and makes it an image. */
static inline void wire_begin(struct wire_image *m)
{
	memset(m, 0, sizeof *m);
	m->magic = WIRE_MAGIC;
	m->version = WIRE_VERSION;
	m->size = WIRE_SIZE;
}

/* wire_edge returns the time of edge n after the tick, s: 0 is the next one. It is infinite if the wheel stops or
 * turns back before. The acceleration of the image holds until the image after it. */
static inline double wire_edge(const struct wire_wheel *w, uint32_t n)
{
	if (w->direction == 0 || w->next == INT64_MAX)
		return INFINITY;
	double t = 1e-9 * (double)w->next;
	double v = w->direction * (w->speed + w->accel * t); /* at the next edge */
	double d = v * v + 2 * w->direction * w->accel * n * w->pitch;
	if (n == 0)
		return t;
	if (d < 0 || v + sqrt(d) <= 0)
		return INFINITY;
	return t + 2 * n * w->pitch / (v + sqrt(d));
}

/* The memory that a driver process shares with lockstep: two images, each behind a sequence number that is odd while
 * the image is written. */
struct wire_slot {
	_Atomic uint64_t sequence;
	uint64_t reserved[7];
	struct wire_image image;
	uint8_t unused[2048 - 64 - WIRE_SIZE];
};

struct wire_shared {
	struct wire_slot out; /* lockstep writes it */
	struct wire_slot in;  /* the driver writes it */
};

_Static_assert(sizeof(struct wire_shared) == 4096, "the slots have other places");

/* wire_write writes an image to a slot. One process writes a slot. */
static inline void wire_write(struct wire_slot *s, const struct wire_image *m)
{
	uint64_t n = atomic_load_explicit(&s->sequence, memory_order_relaxed) | 1;
	atomic_store_explicit(&s->sequence, n, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	memcpy(&s->image, m, sizeof *m);
	atomic_store_explicit(&s->sequence, n + 1, memory_order_release);
}

/* wire_read copies the image of a slot if it is newer than *seen, and updates *seen. It returns 0 without a newer whole
 * image. */
static inline int wire_read(struct wire_slot *s, struct wire_image *m, uint64_t *seen)
{
	uint64_t n = atomic_load_explicit(&s->sequence, memory_order_acquire);
	if (n == *seen || n & 1)
		return 0;
	memcpy(m, &s->image, sizeof *m);
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&s->sequence, memory_order_relaxed) != n)
		return 0;
	*seen = n;
	return wire_valid(m, m->size);
}

#endif
