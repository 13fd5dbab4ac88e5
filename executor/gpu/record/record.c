#include "executor/gpu/record/record.h"
#include "common/clock.h"
#include "executor/compile_result.h"
#include "executor/fact_list.h"
#include "executor/gpu/cases.h"
#include "executor/gpu/compile/cubin.h"
#include "executor/gpu/program/recording.h"
#include "executor/gpu/record/fat_binary.h"
#include "executor/gpu/record/features.h"
#include "executor/gpu/record/machine_code.h"
#include "executor/gpu/record/request.h"
#include "problem/candidate_form.h"
#include "problem/manifest.h"
#include "problem/problem.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Wall time that a candidate may take, as a multiple of the processor time that it may.
#define WALL_FACTOR 3.0
#define REPLY_MAX ((size_t)48 << 20)
#define NOT_RECORDED "this host records no candidates that have host code of their own: "

struct session {
    const struct compile_plan *plan;
    struct cuda_jail *jail; // NULL: none
    struct problem *problem;
    struct compiled *compiled; // part of the caller's outcome
    size_t l2_bytes;
    struct shape_case shape[GPU_CASES_MAX];
    size_t shape_count;
};

// ---- the request ----

// How large the problem's tensors are for a case, and where they have to be while it is recorded.
static int tensor_places(const struct session *s, const struct shape_case *shape,
                         struct tensor_sizes *ret, cu_pointer ret_at[static PROBLEM_TENSOR_MAX],
                         struct err *err)
{
    int rc = tensor_sizes_of(s->problem, shape, ret, err);

    if (rc == 0) {
        gpu_tensor_addresses(s->l2_bytes, ret->bytes, s->problem->tensor_count, ret_at);
    }
    return rc;
}

static uint64_t base_of(const struct compile_plan *plan)
{
    return ARENA_RECORDED + (plan->role == COMPILE_BASELINE ? 0 : ARENA_RECORDED_STEP);
}

static enum manifest_role manifest_role_of(const struct compile_plan *plan)
{
    return plan->role == COMPILE_REFERENCE ? MANIFEST_REFERENCE : MANIFEST_CANDIDATE;
}

static const char *role_name(const struct compile_plan *plan)
{
    static const char *const role[] = {[COMPILE_CANDIDATE] = "candidate",
                                       [COMPILE_BASELINE] = "baseline",
                                       [COMPILE_REFERENCE] = "reference"};
    return role[plan->role < ARRAY_LEN(role) ? plan->role : COMPILE_CANDIDATE];
}

// Makes the request. *ret_source_is_text is false when the source is no UTF-8.
static int make_request(const struct session *s, struct bytes *ret, bool *ret_source_is_text,
                        struct err *err)
{
    const struct compile_plan *plan = s->plan;
    struct record_case *cases = xcalloc(s->shape_count + 1, sizeof(*cases));
    struct record_request what = {.source = &plan->source,
                                  .role = role_name(plan),
                                  .problem = s->problem,
                                  .target = plan->target,
                                  .device = plan->device,
                                  .base = base_of(plan),
                                  .cpu_seconds = plan->max_seconds,
                                  .cases = cases,
                                  .case_count = s->shape_count};
    int rc = 0;

    for (size_t i = 0; i < s->shape_count && rc == 0; i++) {
        cases[i].shape = s->shape[i];
        rc = tensor_places(s, &s->shape[i], &cases[i].sizes, cases[i].at, err);
    }
    rc = rc == 0 ? record_request_make(&what, ret, ret_source_is_text, err) : rc;
    free(cases);
    return rc;
}

// ---- the reply ----

static void refuse_end(const struct session *s, const struct recorder_report *report)
{
    double limit = WALL_FACTOR * s->plan->max_seconds;
    char *end;

    switch (report->end) {
    case RECORDER_TIMEOUT:
        compile_result_refuse(
            s->compiled, VERDICT_REJECTED,
            xasprintf("it did not end within %g seconds while it was recorded; it may not wait",
                      limit));
        return;
    case RECORDER_LARGE:
        compile_result_refuse_large(s->compiled, REPLY_MAX);
        return;
    default:
        break;
    }
    if (report->cpu_seconds >= s->plan->max_seconds) {
        compile_result_refuse_slow(s->compiled, s->plan);
        return;
    }
    end = compile_result_end(report->status);
    compile_result_refuse(s->compiled, VERDICT_CRASH,
                          xasprintf("its process %s while it was recorded", end));
    free(end);
}

// Puts in the place of each fat binary the cubin in it that runs on the device, so that all that is
// looked into and loaded from here on is a cubin.
static int unpack_images(const struct session *s, struct cuda_recording *recording, struct err *err)
{
    size_t left = RECORDING_IMAGES_MAX;
    unsigned device;
    int rc = cubin_target(s->plan->target, &device, err);

    for (size_t i = 0; i < recording->images_count && rc == 0; i++) {
        struct bytes *data = &recording->images[i].data, cubin;

        if (!is_fat_binary(data)) {
            continue;
        }
        rc = fat_binary_cubin(data, device, left, &cubin, err);
        if (rc == 0) {
            left -= cubin.len;
            bytes_clear(data);
            *data = cubin;
        }
    }
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Leaves out the code of the kernels in an image that are not launched. What is no sound cubin
// stays as it is, to be refused.
static void leave_out_kernels(struct cuda_recording *recording, uint64_t number)
{
    const char **launched = NULL;
    size_t count = 0;

    for (size_t i = 0; i < recording->cases_count; i++) {
        const struct recorded_case *of = &recording->cases[i];

        launched = xrealloc(launched, count + of->nodes_count + 1, sizeof(*launched));
        for (size_t k = 0; k < of->nodes_count; k++) {
            const struct recorded_node *node = &of->nodes[k];

            if (node->kind == RECORDED_KERNEL && node->image == number && node->symbol) {
                launched[count++] = node->symbol;
            }
        }
    }
    if (count > 0) {
        qsort(launched, count, sizeof(*launched), by_name);
        cubin_keep_kernels(&recording->images[number].data, launched, count);
    }
    free(launched);
}

// Adds the variables of cubins, which are given back what they held after each launch.
static int find_globals(struct cuda_recording *recording, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; i < recording->images_count && rc == 0; i++) {
        struct recorded_image *image = &recording->images[i];

        for (size_t k = 0; k < image->globals_count; k++) { // those that it names itself
            message_clear(&cuda_global_message, &image->globals[k]);
        }
        free(image->globals);
        image->globals = NULL;
        image->globals_count = 0;
        rc = cubin_globals(&image->data, &image->globals, &image->globals_count, err);
    }
    return rc;
}

static int check_places(const struct session *s, const struct shape_case *shape,
                        const struct recorded_case *of, struct err *err)
{
    cu_pointer at[PROBLEM_TENSOR_MAX];
    struct tensor_sizes sizes;
    int rc = tensor_places(s, shape, &sizes, at, err);

    for (size_t t = 0; t < of->tensors_count && rc == 0; t++) {
        if (of->tensors[t] != at[t]) {
            rc = err_set(err, ERR_INVALID, "%s was recorded at another address than it was given",
                         s->problem->tensor[t].name);
        }
    }
    return rc;
}

// Whether every case that will be asked for is there, with the addresses that were given. Otherwise
// measuring it would fail for a reason that looks like the machine's.
static int check_cases(const struct session *s, const struct cuda_recording *recording,
                       struct err *err)
{
    if (recording->base != base_of(s->plan)) {
        return err_set(err, ERR_INVALID, "the recording is of other addresses");
    }
    for (size_t i = 0; i < s->shape_count; i++) {
        const struct recorded_case *of = recording_find(recording, s->problem, &s->shape[i]);

        if (!of) {
            return err_set(err, ERR_INVALID, "a case has not been recorded");
        }
        int rc = check_places(s, &s->shape[i], of, err);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

// Packs the object: a recording, or without one (NULL) a candidate that is to run unsealed.
static void keep_object(const struct session *s, struct cuda_recording *recording,
                        struct bytes *ret)
{
    struct cuda_object object;
    struct strbuf packed;
    struct err why = ERR_INIT;

    message_init(&cuda_object_message, &object);
    object.source = s->plan->source;
    object.target = s->plan->target;
    object.recording = recording;
    object.unsealed = !recording;
    if (recording) {
        recording_pack_images(recording);
    }
    strbuf_init(&packed, s->plan->max_output);
    int rc = message_pack(&cuda_object_message, &object, &packed, &why);
    if (packed.truncated) {
        compile_result_refuse_large(s->compiled, s->plan->max_output);
    } else if (rc != 0) {
        // More of something than a message has, such as variables of an image.
        compile_result_refuse(s->compiled, VERDICT_REJECTED,
                              xasprintf("what was recorded cannot be kept: %s", why.text));
    } else {
        s->compiled->object = digest_of(packed.data, packed.len);
        s->compiled->unsealed = !recording;
        *ret = strbuf_detach_bytes(&packed);
    }
    strbuf_release(&packed);
}

static void take_recording(const struct session *s, struct record_reply *reply, struct bytes *ret)
{
    struct err why = ERR_INIT;
    int rc = unpack_images(s, reply->recording, &why);

    if (rc == ERR_LIMIT) {
        compile_result_refuse(
            s->compiled, VERDICT_REJECTED,
            xasprintf("the libraries that it launches from have more than the %zu MiB of code that "
                      "a recording may have",
                      RECORDING_IMAGES_MAX >> 20));
        return;
    }
    for (size_t i = 0; rc == 0 && i < reply->recording->images_count; i++) {
        leave_out_kernels(reply->recording, i);
    }
    if (rc == 0) {
        rc = recording_check(reply->recording, s->problem, manifest_role_of(s->plan), &why);
    }
    if (rc == 0) {
        rc = check_cases(s, reply->recording, &why);
    }
    if (rc == 0) {
        rc = find_globals(reply->recording, &why);
    }
    if (rc != 0) {
        compile_result_refuse(s->compiled, VERDICT_REJECTED, xstrdup(why.text));
        return;
    }
    record_features(reply->recording, s->problem, &s->shape[0], s->plan->facts,
                    s->plan->facts_count, &s->compiled->features, &s->compiled->features_count);
    const struct recorded_case *first = recording_find(reply->recording, s->problem, &s->shape[0]);
    // Also where the plan needs none: recording once more for it would cost far more.
    if (first && s->jail && s->plan->role == COMPILE_CANDIDATE) {
        record_machine_code(reply->recording, first, s->plan, s->jail, &s->compiled->features,
                            &s->compiled->features_count);
    }
    keep_object(s, reply->recording, ret);
}

// What cannot be recorded because its host code decides is an object all the same where the plan
// asks for one; the log says why.
static void take_unsealed(const struct session *s, const char *reason, struct bytes *ret)
{
    char *log = s->compiled->log;

    s->compiled->log =
        xasprintf("it is not recorded: %.4000s%s%.56000s", reason, log ? "\n" : "", log ? log : "");
    free(log);
    keep_object(s, NULL, ret);
}

static void take_refusal(const struct session *s, const struct record_reply *reply,
                         struct bytes *ret)
{
    bool unsealable = reply->unsealable && reply->reason && s->plan->role == COMPILE_CANDIDATE;
    const char *hint = unsealable ? "; with --unsealed it is measured with its host code" : "";
    char *reason = xasprintf("%.3900s%s",
                             reply->reason ? reply->reason
                                           : "what was recorded makes no sense: there is neither "
                                             "a recording nor a reason why not",
                             s->plan->unsealed ? "" : hint);

    compile_result_clean(reason, strlen(reason));
    if (unsealable && s->plan->unsealed) {
        take_unsealed(s, reason, ret);
        free(reason);
    } else {
        compile_result_refuse(s->compiled, record_reply_verdict(reply, VERDICT_REJECTED), reason);
    }
}

// A refusal of what has used up its processor time may come from a compiler that was ended by it. A
// failure of the recorder's is one of the machine only as long as no code of the candidate's can
// have said so.
static int take_reply(const struct session *s, const struct recorder_report *report,
                      const struct bytes *packed, struct bytes *ret, struct err *err)
{
    struct record_reply reply;
    struct err why = ERR_INIT;
    int rc = 0;

    if (message_read(&record_reply_message, &reply, packed->data, packed->len, &why) != 0) {
        compile_result_refuse(s->compiled, VERDICT_REJECTED,
                              xasprintf("what was recorded makes no sense: %s", why.text));
        return 0;
    }
    if (reply.log) { // how it was compiled, or why it failed
        compile_result_clean(reply.log, strlen(reply.log));
        s->compiled->log = reply.log;
        reply.log = NULL;
    }
    if (reply.failure) {
        compile_result_clean(reply.failure, strlen(reply.failure));
        if (report->began) {
            compile_result_refuse(s->compiled, VERDICT_REJECTED,
                                  xasprintf("it cannot be recorded: %.600s", reply.failure));
        } else {
            rc = err_set(err, ERR_SYSTEM, "the recorder has failed: %.600s", reply.failure);
        }
    } else if (reply.recording && !reply.verdict) {
        take_recording(s, &reply, ret);
    } else if (report->cpu_seconds >= s->plan->max_seconds) {
        compile_result_refuse_slow(s->compiled, s->plan);
    } else {
        take_refusal(s, &reply, ret);
    }
    message_clear(&record_reply_message, &reply);
    return rc;
}

// ---- the whole ----

static int ask(const struct session *s, struct recorder *recorder, struct bytes *ret,
               struct err *err)
{
    const struct compile_plan *plan = s->plan;
    struct bytes request = {.data = NULL}, reply = {.data = NULL};
    struct err why = ERR_INIT;
    bool is_text;

    if (plan->role == COMPILE_REFERENCE &&
        candidate_form((const char *)plan->source.data, plan->source.len) == FORM_LAUNCHER) {
        compile_result_refuse(s->compiled, VERDICT_COMPILE_ERROR,
                              xstrdup("a reference has no code of the host in C++; write it with "
                                      "launch lines, or as reference.py"));
        return 0;
    }
    int rc = make_request(s, &request, &is_text, err);

    if (rc != 0 || !is_text) {
        if (rc == 0) {
            compile_result_refuse(s->compiled, VERDICT_COMPILE_ERROR,
                                  xstrdup("it is no UTF-8 text"));
        }
        goto out;
    }
    if (recorder_start(recorder, plan->python ? plan->python : "python3", plan->sandbox_off,
                       &why) != 0) {
        rc = err_set(err, ERR_UNSUPPORTED, NOT_RECORDED "%.700s", why.text);
        goto out;
    }
    struct recorder_report report;
    rc = recorder_ask(recorder, &request, plan->device, WALL_FACTOR * plan->max_seconds, REPLY_MAX,
                      &report, &reply, err);
    if (rc != 0) {
        goto out;
    }
    if (report.end == RECORDER_DONE) {
        rc = take_reply(s, &report, &reply, ret, err);
    } else {
        refuse_end(s, &report);
    }
out:
    bytes_clear(&request);
    bytes_clear(&reply);
    return rc;
}

int record_cuda(const struct compile_plan *plan, struct recorder *recorder, struct cuda_jail *jail,
                struct compile_outcome *ret, struct err *err)
{
    struct session s = {.plan = plan, .jail = jail};
    uint64_t begin = clock_now_ns(&clock_system);
    double l2_bytes = fact_list_find(plan->facts, plan->facts_count, "l2_bytes");

    if (!plan->target || !plan->problem.data) {
        return err_set(err, ERR_INVALID, "the plan has no target or no problem");
    }
    int rc = problem_parse(&s.problem, (const char *)plan->problem.data, plan->problem.len,
                           "problem.json", err);
    if (rc != 0) {
        return rc;
    }
    message_init(&compile_outcome_message, ret);
    s.compiled = ret->compiled = xmalloc(sizeof(*ret->compiled));
    message_init(&compiled_message, s.compiled);
    s.l2_bytes = l2_bytes > 0 ? (size_t)l2_bytes : 0;
    s.shape_count = gpu_cases(s.problem, (enum compile_role)plan->role, plan->hidden_seed, s.shape);
    rc = ask(&s, recorder, &ret->object, err);
    if (rc == 0) {
        s.compiled->seconds = clock_seconds(clock_now_ns(&clock_system) - begin);
        s.compiled->sandbox = xstrdup(plan->sandbox_off ? "off" : "on");
    } else {
        message_clear(&compile_outcome_message, ret);
    }
    problem_free(s.problem);
    return rc;
}
