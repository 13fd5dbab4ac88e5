// Time as a thing that can be passed in, so that tests move it. All times are nanoseconds.
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <stdint.h>

#define NS_PER_US 1000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_S 1000000000ULL

struct clock {
    uint64_t (*monotonic_ns)(const struct clock *clock); // never goes back
    int64_t (*wall_ns)(const struct clock *clock);       // since 1970 UTC
    uint64_t fake_ns;                                    // what a fake clock answers
};

extern const struct clock clock_system;                    // the real clocks
void clock_fake_init(struct clock *clock, uint64_t at_ns); // stands still until clock_fake_advance
void clock_fake_advance(struct clock *clock, uint64_t ns);

uint64_t clock_now_ns(const struct clock *clock); // monotonic
int64_t clock_wall_ns(const struct clock *clock);
double clock_seconds(uint64_t ns); // ns as seconds

#endif
