// The clocks of the operating system, and a fake one that moves only when told.
#include "common/clock.h"
#include <stdlib.h>
#include <time.h>

static struct timespec read_clock(clockid_t id)
{
    struct timespec now;

    if (clock_gettime(id, &now) != 0) {
        abort(); // cannot happen: both clocks exist on every Linux
    }
    return now;
}

static uint64_t system_monotonic_ns(const struct clock *clock)
{
    struct timespec now = read_clock(CLOCK_MONOTONIC);

    (void)clock;
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static int64_t system_wall_ns(const struct clock *clock)
{
    struct timespec now = read_clock(CLOCK_REALTIME);

    (void)clock;
    return (int64_t)now.tv_sec * (int64_t)NS_PER_S + (int64_t)now.tv_nsec;
}

static uint64_t fake_monotonic_ns(const struct clock *clock)
{
    return clock->fake_ns;
}

static int64_t fake_wall_ns(const struct clock *clock)
{
    return (int64_t)clock->fake_ns;
}

const struct clock clock_system = {
    .monotonic_ns = system_monotonic_ns,
    .wall_ns = system_wall_ns,
};

void clock_fake_init(struct clock *clock, uint64_t at_ns)
{
    *clock = (struct clock){
        .monotonic_ns = fake_monotonic_ns,
        .wall_ns = fake_wall_ns,
        .fake_ns = at_ns,
    };
}

void clock_fake_advance(struct clock *clock, uint64_t ns)
{
    clock->fake_ns += ns;
}

uint64_t clock_now_ns(const struct clock *clock)
{
    return clock->monotonic_ns(clock);
}

int64_t clock_wall_ns(const struct clock *clock)
{
    return clock->wall_ns(clock);
}

double clock_seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}
