// Time as an object that is passed in, so that tests can move it. Daemon, worker and client take a
// struct clock where they decide by time. All times are in nanoseconds unless the name says
// otherwise.
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <stdint.h>

#define NS_PER_US 1000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_S 1000000000ULL

struct clock {
    uint64_t (*monotonic_ns)(const struct clock *clock); // never goes back
    int64_t (*wall_ns)(const struct clock *clock);       // since 1970 UTC
    uint64_t fake_ns;                                    // the time of a fake clock
};

// The clocks of the operating system.
extern const struct clock clock_system;
// Makes a fake clock that stands still at at_ns. Both kinds of time have the same value.
void clock_fake_init(struct clock *clock, uint64_t at_ns);
// Moves a fake clock forward.
void clock_fake_advance(struct clock *clock, uint64_t ns);

uint64_t clock_now_ns(const struct clock *clock); // monotonic time
int64_t clock_wall_ns(const struct clock *clock); // since 1970 UTC
double clock_seconds(uint64_t ns);                // converts nanoseconds to seconds

#endif
