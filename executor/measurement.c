#include "executor/measurement.h"
#include "common/strbuf.h"
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#define LONGEST_LAUNCHES 6 // verification may take as long as so many, beside the time for timing

int measurement_init(struct measurement *measurement, const struct measure_plan *plan,
                     uint64_t rng_stream, struct err *err)
{
    *measurement = (struct measurement){.plan = plan, .max_error = NAN, .error_bound = NAN};
    message_init(&accounts_message, &measurement->seconds);
    stats_rng_init(&measurement->rng, plan->seed, rng_stream);
    return problem_parse(&measurement->problem, (const char *)plan->problem.data, plan->problem.len,
                         "problem.json", err);
}

void measurement_release(struct measurement *measurement)
{
    problem_free(measurement->problem);
    free(measurement->reason);
    *measurement = (struct measurement){.plan = NULL};
}

int measurement_stop(struct measurement *measurement, enum verdict verdict, const char *format, ...)
{
    if (measurement->verdict == VERDICT_NONE) {
        va_list args;

        va_start(args, format);
        struct strbuf text = STRBUF_INIT;
        strbuf_vaddf(&text, format, args);
        va_end(args);
        measurement->verdict = verdict;
        measurement->reason = strbuf_detach(&text);
    }
    return MEASURE_STOP;
}

int measurement_add_launch(struct measurement *measurement, uint64_t start_ns,
                           const char *case_name)
{
    const struct measure_plan *plan = measurement->plan;
    double limit = LONGEST_LAUNCHES * plan->launch_seconds + plan->max_seconds;

    measurement->launched_seconds += seconds_since(start_ns);
    if (measurement->launched_seconds <= limit) {
        return 0;
    }
    return measurement_stop(measurement, VERDICT_TIMEOUT,
                            "its launches have taken more than %.3g seconds in all, up to one for "
                            "%s",
                            limit, case_name);
}

void measurement_spend(double *phase, uint64_t start)
{
    *phase = fmax(*phase, 0) + seconds_since(start);
}
