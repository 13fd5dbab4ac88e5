// A made-up space with three parameters and a known best point. Some points do not compile, some
// are wrong, and some have the same object as another one. A measurement takes 0.1 to 0.2 s.
#ifndef TESTS_REPLAY_TOY_H
#define TESTS_REPLAY_TOY_H

#include "client/space/space.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include "replay/recorded_space.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TOY_A 8
#define TOY_B 6
#define TOY_C 4
#define TOY_POINTS (TOY_A * TOY_B * TOY_C)

static inline double toy_log2(int a, int b, int c)
{
    return 2.0 - 0.08 * (a - 5) * (a - 5) - 0.12 * (b - 2) * (b - 2) + 0.15 * c;
}

static inline struct fact toy_fact(const char *name, double value)
{
    return (struct fact){.name = xstrdup(name), .value = value};
}

static inline struct result *toy_result(int a, int b, int c)
{
    struct result *result = xmalloc(sizeof(*result));

    message_init(&result_message, result);
    result->verdict = b == 4 && c == 3        ? VERDICT_WRONG
                      : toy_log2(a, b, c) > 0 ? VERDICT_FASTER
                                              : VERDICT_SLOWER;
    if (verdict_is_ratio(result->verdict)) {
        result->speedup = xmalloc(sizeof(*result->speedup));
        message_init(&estimate_message, result->speedup);
        result->speedup->log2 = toy_log2(a, b, c);
        result->speedup->lo = result->speedup->log2 - 0.01;
        result->speedup->hi = result->speedup->log2 + 0.01;
    }
    result->seconds = xmalloc(sizeof(*result->seconds));
    message_init(&accounts_message, result->seconds);
    result->seconds->held = 0.1 + 0.01 * a;
    return result;
}

static inline struct compiled *toy_compiled(int a, int b, int c)
{
    struct compiled *compiled = xmalloc(sizeof(*compiled));

    message_init(&compiled_message, compiled);
    compiled->seconds = 0.3;
    if (a == 7 && b == 5) {
        compiled->verdict = VERDICT_COMPILE_ERROR;
        compiled->reason = xstrdup("too many registers");
        return compiled;
    }
    char text[32];
    // When a is 0, c = 0 and c = 1 give the same object.
    (void)snprintf(text, sizeof(text), "object %d %d %d", a, b, a == 0 && c == 1 ? 0 : c);
    compiled->object = digest_of(text, strlen(text));
    compiled->features = xcalloc(2, sizeof(*compiled->features));
    compiled->features[0] = toy_fact("registers", 16 + 4 * a);
    compiled->features[1] = toy_fact("shared", 1024 * b);
    compiled->features_count = 2;
    return compiled;
}

static inline struct space toy_space(void)
{
    struct space space = {.candidate = xcalloc(TOY_POINTS, sizeof(*space.candidate))};

    message_init(&space_head_message, &space.head);
    space.head.format = SPACE_FORMAT;
    space.head.problem = xstrdup("toy");
    space.head.device_class = xstrdup("toy device");
    for (int i = 0; i < TOY_POINTS; i++) {
        struct space_candidate *candidate = &space.candidate[i];
        int a = i % TOY_A, b = i / TOY_A % TOY_B, c = i / TOY_A / TOY_B;

        message_init(&space_candidate_message, candidate);
        candidate->name = xasprintf("A=%d B=%d C=%d", 1 << a, b, c);
        candidate->params = xcalloc(3, sizeof(*candidate->params));
        candidate->params[0] = toy_fact("A", 1 << a);
        candidate->params[1] = toy_fact("B", b);
        candidate->params[2] = toy_fact("C", c);
        candidate->params_count = 3;
        candidate->compiled = toy_compiled(a, b, c);
        if (candidate->compiled->verdict == VERDICT_NONE) {
            candidate->result = toy_result(a, b, a == 0 && c == 1 ? 0 : c);
        }
    }
    space.head.candidates = TOY_POINTS;
    return space;
}

static inline struct recorded_space *make_recorded(void)
{
    struct space space = toy_space();
    struct recorded_space *recorded;
    struct err err = ERR_INIT;

    assert_int_equal(recorded_space_create(&recorded, &space, "toy", &err), 0);
    return recorded;
}

#endif
