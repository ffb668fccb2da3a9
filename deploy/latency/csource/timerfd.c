// timerfd waits on the absolute grid of a timerfd and counts wake-ups by latency.
// It is the reference for lockstep's timerfd ticker and measures like lockstep:
// classes of 1 us up to 10 ms; the latency counts from the first missed grid
// point.
//
// usage: timerfd CPU PRIORITY PERIOD_NS WARMUP SAMPLES
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { CLASSES = 10000 };

static long long count[CLASSES], off, max, missed, over, samples;
static char refused[512];

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct timespec timespec(long long ns)
{
	struct timespec t = {ns / 1000000000, ns % 1000000000};
	return t;
}

static void refuse(const char *what)
{
	size_t used = strlen(refused);
	snprintf(refused + used, sizeof refused - used, "%s{\"What\":\"%s: %s\",\"Help\":\"run as root\"}",
		used ? "," : "", what, strerror(errno));
}

static void prepare(int cpu, int priority)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		refuse("CPU");
	struct sched_param p = {.sched_priority = priority};
	if (sched_setscheduler(0, SCHED_FIFO, &p))
		refuse("SCHED_FIFO");
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		refuse("mlockall");
	int fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC); // held to the end
	int32_t zero = 0;
	if ((fd < 0 && errno != ENOENT) || (fd >= 0 && write(fd, &zero, sizeof zero) != sizeof zero))
		refuse("/dev/cpu_dma_latency");
}

static void record(long long late, long long points, long long period)
{
	if (late < 0)
		late = 0;
	if (late < CLASSES * 1000LL)
		count[late / 1000]++;
	else
		off++;
	if (late > max)
		max = late;
	over += late >= period;
	missed += points - 1;
	samples++;
}

static void print(void)
{
	const char *comma = "";
	printf("{\"histogram\":{");
	for (int i = 0; i < CLASSES; i++)
		if (count[i]) {
			printf("%s\"%d\":%lld", comma, i, count[i]);
			comma = ",";
		}
	printf("},\"off_chart\":%lld,\"samples\":%lld,\"max_ns\":%lld,\"missed\":%lld,\"over_period\":%lld,\"missing\":[%s]}\n",
		off, samples, max, missed, over, refused);
}

int main(int argc, char **argv)
{
	if (argc != 6)
		return 2;
	long long period = atoll(argv[3]), warmup = atoll(argv[4]), wanted = atoll(argv[5]);
	prepare(atoi(argv[1]), atoi(argv[2]));
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	long long start = now();
	struct itimerspec grid = {timespec(period), timespec(start + period)};
	if (fd < 0 || timerfd_settime(fd, TFD_TIMER_ABSTIME, &grid, NULL)) {
		perror("timerfd");
		return 1;
	}
	for (long long k = 0; k < warmup + wanted;) {
		uint64_t points;
		if (read(fd, &points, sizeof points) != sizeof points) {
			if (errno == EINTR)
				continue;
			perror("read");
			return 1;
		}
		long long late = now() - (start + (k + 1) * period);
		k += points;
		if (k > warmup) // a delay beyond the end of the warm-up is counted
			record(late, points, period);
	}
	print();
	return 0;
}
