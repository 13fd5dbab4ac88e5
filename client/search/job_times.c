#include "client/search/job_times.h"

#include "common/clock.h"
#include "common/mem.h"
#include <math.h>

double job_times_now(void)
{
    return (double)clock_wall_ns(&clock_system) * 1e-9;
}

static void fill_from_result(struct job_times *times, const struct job_info *info)
{
    const struct compiled *compiled = info->compiled;
    const struct result *result = info->result;
    if (compiled && !compiled->cached && compiled->seconds > 0) {
        times->compiling = times->answered - compiled->seconds;
    }
    if (result && !result->cached && result->seconds && result->seconds->held > 0) {
        times->running = times->answered - result->seconds->held;
    }
}

struct job_times *job_times_of(double submitted_at, const struct job_info *info)
{
    double now = job_times_now();
    const struct job_ages *ages = info->ages;
    struct job_times *times = xmalloc(sizeof(*times));
    message_init(&job_times_message, times);
    times->answered = now;
    times->submitted = fmin(submitted_at, now - info->age_seconds); // fmin leaves NaN out
    if (ages) {
        times->compiling = now - ages->compiling;
        times->ready = now - ages->ready;
        times->running = now - ages->running;
        times->ended = now - ages->ended;
    } else {
        fill_from_result(times, info);
    }
    return times;
}
