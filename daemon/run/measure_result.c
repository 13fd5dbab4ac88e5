// What the result of a run says besides what the executor has found.
#include "common/clock.h"
#include "daemon/run/measure_inside.h"
#include <stdlib.h>

static void set_text(char **field, const char *text)
{
    free(*field);
    *field = text ? xstrdup(text) : NULL;
}

static void fill_accounts(struct run *run, struct result *result)
{
    if (!result->seconds) {
        result->seconds = xcalloc(1, sizeof(*result->seconds));
        message_init(&accounts_message, result->seconds);
    }
    result->seconds->queue = run->queue_seconds;
    result->seconds->compile = run->compile_seconds;
    result->seconds->held =
        run->device->job == 0 // it was released before
            ? run->end.held_s
            : clock_seconds(device_job_ns(run->device, clock_now_ns(run->parts->clock)));
    result->seconds->wait = clock_seconds(run->device->since_ns - run->device->leased_ns);
}

// Replaces the conditions that the executor gives by the last readings of the GPU, and adds whether
// the run was disturbed.
static void fill_conditions(const struct run *run, bool disturbed, struct result *result)
{
    for (size_t i = 0; i < result->conditions_count; i++) {
        message_clear(&fact_message, &result->conditions[i]);
    }
    free(result->conditions);
    struct fact *facts =
        device_readings(run->device, clock_now_ns(run->parts->clock), &result->conditions_count);
    if (disturbed) {
        facts = xrealloc(facts, result->conditions_count + 1, sizeof(*facts));
        facts[result->conditions_count++] = (struct fact){.name = xstrdup("disturbed"), .value = 1};
    }
    result->conditions = facts;
}

static void fill_compiled(const struct job *job, struct result *result)
{
    if (!result->compiled) {
        result->compiled = xcalloc(1, sizeof(*result->compiled));
    }
    message_clear(&compiled_message, result->compiled);
    job_read_compiled(job, result->compiled);
    result->compiled->cached = false; // a result does not say whether it was in the cache
}

void measure_fill_result(struct run *run, bool disturbed, struct result *result)
{
    set_text(&result->device, run->device->name);
    set_text(&result->device_class, run->device->device_class->name);
    set_text(&result->sandbox, run->parts->limits.sandbox_off ? "off" : "on");
    if (!result->trust && !device_is_gpu(run->device)) {
        set_text(&result->trust, "c");
    }
    result->problem = run->expected.problem;
    result->candidate = run->expected.candidate;
    result->attempt = run->attempt;
    result->seed = run->seed;
    result->cached = false;
    result->measured_at = (double)clock_wall_ns(run->parts->clock) / 1e9;
    if (run->job) {
        fill_compiled(run->job, result);
    }
    fill_conditions(run, disturbed, result);
    fill_accounts(run, result);
}
