#include "daemon/devices/utilisation.h"
#include "common/clock.h"
#include "common/mem.h"
#include "daemon/devices/device.h"
#include <stddef.h>

#define MINUTE_NS (UTILISATION_SECONDS * NS_PER_S)

void held_minute_add(struct held_minute *minute, uint64_t from_ns, uint64_t to_ns)
{
    if (to_ns > MINUTE_NS && from_ns < to_ns - MINUTE_NS) {
        from_ns = to_ns - MINUTE_NS;
    }
    while (from_ns < to_ns) {
        uint64_t second = from_ns / NS_PER_S;
        uint64_t end_ns = (second + 1) * NS_PER_S < to_ns ? (second + 1) * NS_PER_S : to_ns;
        size_t i = second % ARRAY_LEN(minute->second);

        if (minute->second[i] != second) {
            minute->second[i] = second;
            minute->held_ns[i] = 0;
        }
        minute->held_ns[i] += (uint32_t)(end_ns - from_ns);
        from_ns = end_ns;
    }
}

// What was held from `from_ns` on. Only the second that this lies in is divided, evenly.
static double held_since(const struct held_minute *minute, uint64_t from_ns, uint64_t now_ns)
{
    double held_ns = 0;

    for (size_t i = 0; i < ARRAY_LEN(minute->second); i++) {
        uint64_t begin_ns = minute->second[i] * NS_PER_S, end_ns = begin_ns + NS_PER_S;

        if (end_ns > from_ns && begin_ns <= now_ns) {
            uint64_t inside_ns = begin_ns >= from_ns ? NS_PER_S : end_ns - from_ns;
            held_ns += minute->held_ns[i] * ((double)inside_ns / NS_PER_S);
        }
    }
    return held_ns;
}

static double part(double held_ns, uint64_t of_ns)
{
    double ret = of_ns > 0 ? held_ns / (double)of_ns : 0;

    return ret < 1 ? ret : 1; // a divided second may be a little too much
}

void device_utilisation(const struct device *device, uint64_t started_ns, uint64_t now_ns,
                        double *ret_start, double *ret_minute)
{
    uint64_t up_ns = now_ns > started_ns ? now_ns - started_ns : 0;
    uint64_t minute_ns = up_ns < MINUTE_NS ? up_ns : MINUTE_NS;
    uint64_t job_ns = device_job_ns(device, now_ns); // the hold that lasts
    uint64_t inside_ns = job_ns < minute_ns ? job_ns : minute_ns;

    *ret_start = part((double)(device->held_ns + job_ns), up_ns);
    *ret_minute = part(held_since(&device->minute, now_ns - minute_ns, now_ns) + (double)inside_ns,
                       minute_ns);
}
