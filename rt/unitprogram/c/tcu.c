/* tcu.c: a control unit of the powershift gearbox that stays in its first gear, an example for
 * lockstep.h.
 *
 *   cc -O2 -o tcu tcu.c
 *
 * In the bench file: control_unit: {exec: ./tcu} */
#include <stdio.h>

#include "lockstep.h"

static void put(uint8_t *data, int at, int bits, uint64_t value) /* Intel byte order */
{
	for (int i = 0; i < bits; i++)
		if (value >> i & 1)
			data[(at + i) / 8] |= (uint8_t)(1 << (at + i) % 8);
}

int main(void)
{
	static const double bar[8] = {18, 0, 17.5, 0, 0, 18, 0, 0}; /* clutches 1, 3 and 6 */
	const int64_t cycle = 10000000;                             /* ns */
	struct lockstep bench;
	struct lockstep_frame frame;
	int64_t due = cycle;
	unsigned counter = 0, speeds = 0;
	int got;

	if (lockstep_open(&bench) < 0) {
		fprintf(stderr, "tcu: lockstep starts this program: control_unit: {exec: ./tcu}\n");
		return 2;
	}
	while ((got = lockstep_receive(&bench, &frame, due)) >= 0) {
		if (got > 0) {
			speeds += frame.id == 0x200;
			continue;
		}
		for (int half = 0; half < 2; half++) { /* TCU_Pressure_1, TCU_Pressure_2 */
			struct lockstep_frame p = {.id = 0x110 + (uint32_t)half, .length = 8};
			for (int i = 0; i < 4; i++)
				put(p.data, 12 * i, 12, (uint64_t)(bar[4 * half + i] * 100 + 0.5));
			put(p.data, 52, 4, counter);
			lockstep_send(&bench, &p);
		}
		counter = (counter + 1) % 16;
		due += cycle;
	}
	printf("tcu: %u frames with speeds, the last at %.3f s\n", speeds, bench.now / 1e9);
	return 0;
}
