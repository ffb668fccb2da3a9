/* flood.c is a control unit that sends as fast as it can. */
#include "lockstep.h"

int main(void)
{
	struct lockstep bench;
	struct lockstep_frame f;
	if (lockstep_open(&bench) < 0)
		return 2;
	lockstep_receive(&bench, &f, 0);
	do
		f = (struct lockstep_frame){.id = 0x110, .length = 8};
	while (lockstep_send(&bench, &f) > 0);
	return 0;
}
