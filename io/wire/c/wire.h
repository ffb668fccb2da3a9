/* The process image of lockstep's io/wire, version 1: little-endian, no padding. */
#ifndef LOCKSTEP_WIRE_H
#define LOCKSTEP_WIRE_H

#include <stdint.h>

#define WIRE_MAGIC 0x4950534cu
#define WIRE_VERSION 1
#define WIRE_SIZE 872

struct wire_pwm {
	double duty;      /* 0 to 1 */
	double frequency; /* Hz */
};

struct wire_wheel {
	double speed;      /* rad/s */
	double accel;      /* rad/s^2 */
	int64_t next;      /* time of the next edge after tick, ns; INT64_MAX without an edge ahead */
	double period;     /* time between edges at speed, s */
	int64_t direction; /* +1 or -1 at the next edge; 0 without an edge ahead */
};

struct wire_image {
	uint32_t magic;
	uint16_t version;
	uint16_t size;
	uint64_t counter; /* images sent before this one */
	int64_t tick;     /* time of the tick, or of the sample in the box's time, ns */
	int64_t age;      /* age of the values at tick, ns */
	uint64_t digital; /* bit n is channel n */
	double analog[32];
	struct wire_pwm pwm[16];
	struct wire_wheel wheel[8];
};

_Static_assert(sizeof(struct wire_image) == WIRE_SIZE, "the layout has padding");

#endif
