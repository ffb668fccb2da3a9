/* A box by wire: reproduces the edges of tone wheels from the images of lockstep, and answers each image with one of
 * its own, over UDP, over shared memory, or not at all for images on standard input.
 *
 *   box udp       prints its port, then answers on 127.0.0.1, with lost, repeated, swapped, delayed and foreign
 *                 images, and not from image 301 on
 *   box unit      prints its port; box and brake control unit in one: it brakes wheel 0 in cycles of 0.2 s, and
 *                 finds faults of two wheel-speed sensors, of the inlet valve and of the pump
 *   box shm FILE  maps the file and answers
 *   box edges     reads images from standard input, loses 2 % of them, and gets the others 20 % of their period
 *                 +-20 % late
 *
 * SIGTERM ends it; it then prints its counts. Each edge is a line "edge WHEEL TIME", the time in ns since the first
 * image; a wheel that turns backward is "-N".
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

#define CLOCK_OF_BOX 123456789000LL /* ns between its clock and that of the host */

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static double random01(void)
{
	static uint64_t s = 1;
	s = s * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(s >> 11) / 9007199254740992.0;
}

/* The edges of a wheel: those of the last image, up to the arrival of the next one. */
struct output {
	struct wire_wheel wheel;
	int64_t tick; /* of the image */
	int64_t behind; /* edges up to this number, over all turns, are behind the sensor */
	int64_t next; /* number of edge 0 of the image */
	int known;
};

static struct output outputs[8];
static void (*seen_edge)(int wheel, int direction, double s); /* the unit behind the box; 0: the edges are printed */
static int64_t start = -1;

/* put writes the edges of an output up to an instant on lockstep's clock. */
static void put(int i, int64_t until)
{
	struct output *o = &outputs[i];
	struct wire_wheel *w = &o->wheel;
	if (!o->known || w->direction == 0 || w->state != WIRE_WORKING)
		return;
	for (uint32_t n = 0; n < 100000; n++) {
		double t = wire_edge(w, n);
		int64_t number = o->next + (int64_t)w->direction * n;
		if (!(o->tick - start + 1e9 * t <= (double)(until - start)))
			return;
		if (w->direction > 0 ? number <= o->behind : number > o->behind)
			continue; /* put out before, from another image */
		o->behind = w->direction > 0 ? number : number - 1;
		if (n < 64 && w->lost >> n & 1)
			continue;
		if (seen_edge)
			seen_edge(i, w->direction, 1e-9 * (double)(o->tick - start) + t);
		else
			printf("edge %s%d %.0f\n", w->direction < 0 ? "-" : "", i, (double)(o->tick - start) + 1e9 * t);
	}
}

/* take takes over the wheels of an image that arrives at an instant on lockstep's clock. */
static void take(const struct wire_image *m, int64_t arrival)
{
	if (start < 0)
		start = m->tick;
	for (int i = 0; i < 8; i++) {
		struct output *o = &outputs[i];
		const struct wire_wheel *w = &m->wheel[i];
		put(i, arrival);
		if (w->pitch == 0)
			continue;
		if (w->direction != 0) {
			int64_t turn = w->teeth, step = ((int64_t)w->tooth - o->next) % turn;
			if (2 * step > turn)
				step -= turn;
			if (2 * step < -turn)
				step += turn;
			o->next = o->known ? o->next + step : w->tooth;
			if (!o->known)
				o->behind = w->direction > 0 ? o->next - 1 : o->next;
		}
		o->known |= w->direction != 0;
		o->wheel = *w;
		o->tick = m->tick;
	}
}

static int edges(void)
{
	struct wire_image m;
	int64_t last = -1, period = 0;
	while (fread(&m, sizeof m, 1, stdin) == 1) {
		if (!wire_valid(&m, sizeof m))
			return 1;
		if (last >= 0 && period == 0)
			period = m.tick - last;
		last = m.tick;
		if (random01() < 0.02)
			continue;
		take(&m, m.tick + (int64_t)(period * (0.2 + 0.4 * (random01() - 0.5))));
	}
	for (int i = 0; i < 8; i++)
		put(i, last);
	return 0;
}

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static uint64_t counter;

/* answer makes the image of the box: a valve of duty 0.25 for 0.2 s, then closed, and the current of its coil. */
static void answer(struct wire_image *m, uint64_t images)
{
	wire_begin(m);
	m->counter = counter++;
	m->tick = now() + CLOCK_OF_BOX;
	m->age = 1000;
	m->digital = 1 | (images & 1) << 1;
	m->pwm[0].duty = images <= 40 ? 0.25 : 1;
	m->pwm[0].frequency = 2000;
	m->analog[0] = 1.5 * m->pwm[0].duty;
}

struct counts {
	unsigned sent, lost, twice, swapped, delayed, foreign;
};

static void transmit(int fd, const void *m, size_t n, struct sockaddr_in *to)
{
	if (sendto(fd, m, n, 0, (struct sockaddr *)to, sizeof *to) != (ssize_t)n)
		perror("sendto");
}

static void reply(int fd, int other, struct sockaddr_in *to, uint64_t images, struct counts *c)
{
	static struct wire_image held;
	static int holds;
	struct wire_image m;
	if (images > 300)
		return;
	answer(&m, images);
	c->sent++;
	if (images % 50 == 10) {
		c->lost++;
		c->sent--;
		return;
	}
	if (images % 50 == 20) { /* goes out behind the next one */
		held = m;
		holds = 1;
		return;
	}
	if (images % 50 == 30) {
		m.tick -= 100000000; /* sampled 0.1 s ago */
		c->delayed++;
	}
	transmit(fd, &m, sizeof m, to);
	if (holds) {
		transmit(fd, &held, sizeof held, to);
		c->swapped++;
		holds = 0;
	}
	if (images % 50 == 40) {
		transmit(fd, &m, sizeof m, to);
		c->twice++;
	}
	if (images % 50 == 45) {
		transmit(other, &m, sizeof m, to); /* another sender */
		transmit(fd, &m, 100, to);
		m.version++;
		transmit(fd, &m, sizeof m, to);
		c->foreign += 3;
	}
}

static int udp(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), other = socket(AF_INET, SOCK_DGRAM, 0), room = 1 << 20;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, from;
	socklen_t n = sizeof at;
	if (fd < 0 || other < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) || getsockname(fd, (struct sockaddr *)&at, &n))
		return 1;
	printf("port %d\n", ntohs(at.sin_port));
	fflush(stdout);
	struct counts c = {0};
	uint64_t images = 0;
	struct wire_image m;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		if (poll(&p, 1, ended ? 0 : 50) != 1) {
			if (ended)
				break; /* all images are read */
			continue;
		}
		n = sizeof from;
		ssize_t got = recvfrom(fd, &m, sizeof m, MSG_TRUNC, (struct sockaddr *)&from, &n);
		if (!wire_valid(&m, got))
			continue;
		take(&m, now());
		reply(fd, other, &from, ++images, &c);
	}
	printf("images %llu sent %u lost %u twice %u swapped %u delayed %u foreign %u\n", (unsigned long long)images, c.sent, c.lost,
	       c.twice, c.swapped, c.delayed, c.foreign);
	return 0;
}

/* Trouble codes, bits 8 to 15 of the digital states. They stay. */
enum { OPEN_LINE, SHORTED, WRONG_TOOTH, AIR_GAP, WRONG_DIRECTION, SWAPPED, VALVE_STUCK, PUMP_DEAD };

static unsigned codes;

/* A sensor as the unit knows it: by its edges alone. */
static struct sensor {
	double last, interval; /* s; interval 0: not known */
	int since;             /* edges since the last interval that was too long */
	int turns, gaps;       /* of those: one turn after the one before, and sooner */
	int direction;
} sensors[2];

static void check_edge(int i, int direction, double s)
{
	struct sensor *x = &sensors[i];
	double interval = s - x->last;
	if (x->interval > 0 && interval > 1.6 * x->interval) {
		x->turns = x->since == 46 ? x->turns + 1 : 0;
		x->gaps = x->since < 20 ? x->gaps + 1 : 0;
		if (x->turns >= 2)
			codes |= 1 << WRONG_TOOTH;
		if (x->gaps >= 4)
			codes |= 1 << AIR_GAP;
		x->since = 0;
	} else {
		if (x->last > 0 && interval > 0)
			x->interval = interval;
		x->since++;
	}
	x->last = s;
	x->direction = direction;
}

/* run_unit is a cycle of the unit: it reads the image and sets the answer. */
static void run_unit(const struct wire_image *m, struct wire_image *out)
{
	static int64_t cycle = -1;
	static int valid, shut, open, swapped, dead;
	static double speed[2];
	for (int i = 0; i < 2; i++) {
		uint8_t state = m->wheel[i].state;
		if (state == WIRE_OPEN)
			codes |= 1 << OPEN_LINE;
		else if (state != WIRE_WORKING)
			codes |= 1 << SHORTED;
		if (state != WIRE_WORKING)
			sensors[i] = (struct sensor){0};
	}
	if (sensors[0].direction * sensors[1].direction < 0)
		codes |= 1 << WRONG_DIRECTION;

	int64_t since = (m->tick - start) % 200000000, n = (m->tick - start) / 200000000;
	valid = (n == cycle && valid) || n != cycle;
	cycle = n;
	if (now() - m->tick > 12000000)
		valid = 0; /* the commands came late */
	double p = m->analog[0], store = m->analog[1];
	if (since < 5000000)
		for (int i = 0; i < 2; i++)
			speed[i] = m->wheel[i].speed;
	if (valid && since >= 55000000 && since < 60000000) { /* the end of braking */
		shut = p < 5e5 ? shut + 1 : 0;
		int other = m->wheel[1].speed - speed[1] < -0.5 && m->wheel[0].speed - speed[0] > -0.5;
		swapped = other ? swapped + 1 : 0;
	}
	if (valid && since >= 195000000) { /* the end of the release */
		open = p > 3e5 ? open + 1 : 0;
		dead = store > 1e5 ? dead + 1 : 0;
	}
	if (shut >= 2 || open >= 2)
		codes |= 1 << VALVE_STUCK;
	if (swapped >= 2)
		codes |= 1 << SWAPPED;
	if (dead >= 2)
		codes |= 1 << PUMP_DEAD;

	wire_begin(out);
	out->counter = counter++;
	out->tick = now() + CLOCK_OF_BOX;
	out->digital = (uint64_t)codes << 8;
	out->pwm[0].duty = since >= 60000000; /* inlet: 1 closes it */
	out->pwm[1].duty = since >= 60000000; /* outlet: 1 opens it */
	out->pwm[8].duty = 1;                 /* pump */
}

static int unit(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), room = 1 << 20;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, from;
	socklen_t n = sizeof at;
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) || getsockname(fd, (struct sockaddr *)&at, &n))
		return 1;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
	printf("port %d\n", ntohs(at.sin_port));
	fflush(stdout);
	seen_edge = check_edge;
	struct wire_image m, out;
	uint64_t images = 0;
	while (!ended) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		n = sizeof from;
		if (poll(&p, 1, 50) != 1 || !wire_valid(&m, recvfrom(fd, &m, sizeof m, MSG_TRUNC, (struct sockaddr *)&from, &n)))
			continue;
		images++;
		take(&m, m.tick);
		run_unit(&m, &out);
		transmit(fd, &out, sizeof out, &from);
	}
	printf("images %llu codes %u\n", (unsigned long long)images, codes);
	return 0;
}

static int shm(const char *path)
{
	int fd = open(path, O_RDWR);
	struct wire_shared *s = mmap(0, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		return 1;
	struct wire_image m;
	uint64_t seen = 0, images = 0;
	for (; !ended; usleep(200)) {
		if (!wire_read(&s->out, &m, &seen))
			continue;
		take(&m, now());
		answer(&m, ++images);
		wire_write(&s->in, &m);
	}
	printf("images %llu\n", (unsigned long long)images);
	return 0;
}

int main(int n, char **word)
{
	signal(SIGTERM, end);
	if (n == 2 && !strcmp(word[1], "edges"))
		return edges();
	if (n == 2 && !strcmp(word[1], "udp"))
		return udp();
	if (n == 2 && !strcmp(word[1], "unit"))
		return unit();
	if (n == 3 && !strcmp(word[1], "shm"))
		return shm(word[2]);
	return 2;
}
