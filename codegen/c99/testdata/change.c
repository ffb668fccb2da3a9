// change steps the kernel changing with inputs that change inside of the steps. It reads, for each
// step, the number of changes and of each the input, the instant, the value and the slope, and then u,
// all as doubles, and writes y.
#include "changing.h"

#include <stdio.h>

int main(void) {
	static changing_kernel k;
	double n, c[4], u[CHANGING_INPUTS], y[CHANGING_OUTPUTS];
	changing_create(&k);
	while (fread(&n, sizeof n, 1, stdin) == 1) {
		for (; n > 0; n--) {
			if (fread(c, sizeof *c, 4, stdin) != 4) return 3;
			changing_change(&k, (int64_t)c[0], c[1], c[2], c[3]);
		}
		if (fread(u, sizeof *u, CHANGING_INPUTS, stdin) != CHANGING_INPUTS) return 3;
		changing_step(&k, y, u);
		if (fwrite(y, sizeof *y, CHANGING_OUTPUTS, stdout) != CHANGING_OUTPUTS) return 3;
	}
	return 0;
}
