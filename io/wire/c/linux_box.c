/* A box of Linux parts: the driver process at the other end of io: {shm: brake-box}. It makes the edges of tone wheel 0 on
 * a GPIO line, measures the current of a valve with an ADC of the IIO subsystem, and the duty of its PWM with two counts
 * of the counter subsystem: one counts while the signal is high, the other all the time.
 *
 *   cc -O2 -o linux_box linux_box.c -lm && sudo chrt -f 70 ./linux_box /dev/shm/brake-box /dev/gpiochip0 17
 *
 * Its edges are as good as its wake-ups, some 10 us on PREEMPT_RT. A microcontroller or FPGA does better with the same
 * image. */
#include <fcntl.h>
#include <linux/gpio.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

#define CURRENT "/sys/bus/iio/devices/iio:device0/in_current0_raw"
#define SCALE 0.001 /* A per bit: in_current0_scale, which is in mA */
#define HIGH "/sys/bus/counter/devices/counter0/count0/count"
#define ALL "/sys/bus/counter/devices/counter0/count1/count"

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t); /* the clock of the ticks, too */
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* number reads a file of sysfs that stays open. */
static double number(int fd)
{
	char text[32] = "";
	return pread(fd, text, sizeof text - 1, 0) > 0 ? atof(text) : NAN;
}

/* set writes the level of the line: high for half a pitch after an edge. */
static void set(int line, int high)
{
	struct gpio_v2_line_values v = {.bits = high, .mask = 1};
	ioctl(line, GPIO_V2_LINE_SET_VALUES_IOCTL, &v);
}

int main(int n, char **word)
{
	if (n != 4)
		return 2;
	int memory = open(word[1], O_RDWR), chip = open(word[2], O_RDWR);
	int current = open(CURRENT, O_RDONLY), high = open(HIGH, O_RDONLY), all = open(ALL, O_RDONLY);
	struct wire_shared *s = mmap(0, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	struct gpio_v2_line_request r = {.offsets = {(unsigned)atoi(word[3])}, .num_lines = 1, .config.flags = GPIO_V2_LINE_FLAG_OUTPUT};
	if (s == MAP_FAILED || ioctl(chip, GPIO_V2_GET_LINE_IOCTL, &r)) {
		perror("linux_box");
		return 1;
	}
	struct wire_image in, out;
	uint64_t seen = 0, counter = 0;
	double high_before = number(high), all_before = number(all);
	int64_t tick = 0, put_out = 0; /* the last edge, ns */
	struct wire_wheel w = {0};
	for (;; usleep(20)) {
		if (wire_read(&s->out, &in, &seen)) {
			w = in.wheel[0];
			tick = in.tick;
			double h = number(high), a = number(all);
			wire_begin(&out);
			out.counter = counter++;
			out.tick = now();
			out.analog[0] = SCALE * number(current);
			out.pwm[0].duty = a > all_before ? (h - high_before) / (a - all_before) : NAN; /* NaN keeps the last value */
			high_before = h;
			all_before = a;
			wire_write(&s->in, &out);
		}
		for (uint32_t i = 0; w.state == WIRE_WORKING && i < 64; i++) { /* the edges that are due by now */
			double at = (double)tick + 1e9 * wire_edge(&w, i), half = 5e8 * w.period;
			if (!(at <= now()))
				break;
			if (at > put_out + half) { /* not put out before, from this image or the one before */
				put_out = (int64_t)at;
				set(r.fd, !(w.lost >> i & 1));
			}
		}
		if (now() - put_out > 5e8 * w.period)
			set(r.fd, 0);
	}
}
