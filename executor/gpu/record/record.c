#include "executor/gpu/record/record.h"
#include "common/clock.h"
#include "executor/compile_result.h"
#include "executor/fact_list.h"
#include "executor/gpu/cases.h"
#include "executor/gpu/compile/cubin.h"
#include "executor/gpu/input_set.h"
#include "executor/gpu/program/recording.h"
#include "executor/gpu/record/fat_binary.h"
#include "executor/gpu/record/features.h"
#include "problem/candidate_form.h"
#include "problem/manifest.h"
#include "problem/problem.h"
#include "proto/verdict.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Wall time that a candidate may take, as a multiple of the processor time that it may.
#define WALL_FACTOR 3.0
#define MEMORY_MAX ((uint64_t)16 << 30) // of the GPU, for what a candidate allocates
#define REPLY_MAX ((size_t)48 << 20)
#define NOT_RECORDED "this host records no candidates that have host code of their own: "

struct session {
    const struct compile_plan *plan;
    struct problem *problem;
    struct compiled *compiled; // part of the caller's outcome
    size_t l2_bytes;
    struct shape_case shape[GPU_CASES_MAX];
    size_t shape_count;
};

// ---- the request ----

static json_t *tensor_json(const struct tensor *tensor)
{
    static const char *const direction[] = {
        [DIRECTION_IN] = "in", [DIRECTION_OUT] = "out", [DIRECTION_INOUT] = "inout"};
    static const char *const distribution[] = {
        [VALUES_NORMAL] = "normal",  [VALUES_UNIFORM] = "uniform", [VALUES_INTEGERS] = "integers",
        [VALUES_ZIPF] = "zipf",      [VALUES_WIDE] = "wide",       [VALUES_SORTED] = "sorted",
        [VALUES_ONE_HOT] = "one-hot"};

    return json_pack("{s:s, s:s, s:s, s:b, s:{s:s, s:[f, f]}}", "name", tensor->name, "direction",
                     direction[tensor->direction], "dtype", dtype_name(tensor->dtype), "exact",
                     tensor_is_exact(tensor), "values", "distribution",
                     distribution[tensor->distribution], "value", tensor->value[0],
                     tensor->value[1]);
}

static int shape_json(const struct tensor *tensor, const struct shape_case *shape, json_t *out,
                      struct err *err)
{
    int rc = 0;

    for (size_t axis = 0; axis < tensor->rank && rc == 0; axis++) {
        int64_t extent = 0;

        rc = expr_eval(&extent, tensor->shape[axis], shape->i, err);
        json_array_append_new(out, json_integer(extent));
    }
    return rc;
}

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

static int case_json(const struct session *s, const struct shape_case *shape, json_t *out,
                     struct err *err)
{
    const struct problem *problem = s->problem;
    json_t *values = json_object(), *shapes = json_array(), *addresses = json_array();
    json_t *bytes = json_array();
    cu_pointer at[PROBLEM_TENSOR_MAX];
    struct tensor_sizes sizes;

    json_object_set_new(out, "values", values);
    json_object_set_new(out, "shapes", shapes);
    json_object_set_new(out, "addresses", addresses);
    json_object_set_new(out, "bytes", bytes);
    int rc = tensor_places(s, shape, &sizes, at, err);
    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < problem->param_count; i++) {
        json_object_set_new(values, problem->param[i].name,
                            problem->param[i].type == PARAM_INT ? json_integer(shape->i[i])
                                                                : json_real(shape->f[i]));
    }
    for (size_t t = 0; t < problem->tensor_count && rc == 0; t++) {
        json_t *extents = json_array();

        json_array_append_new(shapes, extents);
        json_array_append_new(addresses, json_integer((json_int_t)at[t]));
        json_array_append_new(bytes, json_integer((json_int_t)sizes.bytes[t]));
        rc = shape_json(&problem->tensor[t], shape, extents, err);
    }
    return rc;
}

static bool is_launcher(const struct compile_plan *plan)
{
    return candidate_form((const char *)plan->source.data, plan->source.len) == FORM_LAUNCHER;
}

// A baseline is beside a candidate in one process and beside the reference in another, so it has
// the first arena and these two have the second.
static uint64_t base_of(const struct compile_plan *plan)
{
    return ARENA_RECORDED + (plan->role == COMPILE_BASELINE ? 0 : ARENA_RECORDED_STEP);
}

static enum manifest_role manifest_role_of(const struct compile_plan *plan)
{
    return plan->role == COMPILE_REFERENCE ? MANIFEST_REFERENCE : MANIFEST_CANDIDATE;
}

// What the source is in the jail: its role, and the name of its file in messages.
static void add_role(const struct compile_plan *plan, json_t *request)
{
    static const char *const role[] = {[COMPILE_CANDIDATE] = "candidate",
                                       [COMPILE_BASELINE] = "baseline",
                                       [COMPILE_REFERENCE] = "reference"};
    const char *name = role[plan->role < ARRAY_LEN(role) ? plan->role : COMPILE_CANDIDATE];

    json_object_set_new(request, "role", json_string(name));
    json_object_set_new(request, "file", json_sprintf("%s.py", name));
}

// Makes the request. *ret_source_is_text is false when the source is no UTF-8.
static int make_request(const struct session *s, struct bytes *ret, bool *ret_source_is_text,
                        struct err *err)
{
    const struct compile_plan *plan = s->plan;
    const struct problem *problem = s->problem;
    json_t *request = json_object(), *tensors = json_array(), *params = json_array();
    json_t *cases = json_array();
    json_t *source = json_stringn((const char *)plan->source.data, plan->source.len);
    int rc = 0;

    *ret_source_is_text = source;
    json_object_set_new(request, "source", source ? source : json_string(""));
    json_object_set_new(request, "problem", json_string(problem->name));
    json_object_set_new(request, "form", json_string(is_launcher(plan) ? "launcher" : "python"));
    add_role(plan, request);
    json_object_set_new(request, "target", json_string(plan->target));
    json_object_set_new(request, "device", json_string(plan->device ? plan->device : "0"));
    json_object_set_new(request, "library", json_string(RECORDER_LIBRARY));
    json_object_set_new(request, "base", json_integer((json_int_t)base_of(plan)));
    json_object_set_new(request, "memory", json_integer((json_int_t)MEMORY_MAX));
    json_object_set_new(request, "cpu_seconds", json_real(ceil(plan->max_seconds)));
    json_object_set_new(request, "tensors", tensors);
    json_object_set_new(request, "params", params);
    json_object_set_new(request, "cases", cases);
    for (size_t t = 0; t < problem->tensor_count; t++) {
        json_array_append_new(tensors, tensor_json(&problem->tensor[t]));
    }
    for (size_t i = 0; i < problem->param_count; i++) {
        json_array_append_new(params,
                              json_pack("{s:s, s:s}", "name", problem->param[i].name, "type",
                                        problem->param[i].type == PARAM_INT ? "int" : "f64"));
    }
    for (size_t i = 0; i < s->shape_count && rc == 0; i++) {
        json_t *one = json_object();

        json_array_append_new(cases, one);
        rc = case_json(s, &s->shape[i], one, err);
    }
    if (rc == 0) {
        char *text = json_dumps(request, JSON_COMPACT);

        *ret = (struct bytes){.data = (unsigned char *)text, .len = text ? strlen(text) : 0};
        rc = text ? 0 : err_set(err, ERR_INTERNAL, "a request to the recorder");
    }
    json_decref(request);
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
        compile_result_refuse_large(s->compiled, s->plan);
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
    size_t left = s->plan->max_output;
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

static void take_recording(const struct session *s, struct record_reply *reply, struct bytes *ret)
{
    struct cuda_object object;
    struct strbuf packed;
    struct err why = ERR_INIT;
    int rc = unpack_images(s, reply->recording, &why);

    if (rc == ERR_LIMIT) {
        compile_result_refuse_large(s->compiled, s->plan);
        return;
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
    message_init(&cuda_object_message, &object);
    object.source = s->plan->source;
    object.target = s->plan->target;
    object.recording = reply->recording;
    record_features(reply->recording, s->problem, &s->shape[0], s->plan->facts,
                    s->plan->facts_count, &s->compiled->features, &s->compiled->features_count);
    strbuf_init(&packed, (size_t)64 << 20);
    if (message_pack(&cuda_object_message, &object, &packed, &why) != 0) {
        // More of something than a message has, such as variables of an image.
        compile_result_refuse(s->compiled, VERDICT_REJECTED,
                              xasprintf("what was recorded cannot be kept: %s", why.text));
    } else if (packed.truncated || packed.len > s->plan->max_output) {
        compile_result_refuse_large(s->compiled, s->plan);
    } else {
        s->compiled->object = digest_of(packed.data, packed.len);
        *ret = strbuf_detach_bytes(&packed);
    }
    strbuf_release(&packed);
}

static enum verdict verdict_of(const char *name)
{
    static const struct {
        const char *name;
        enum verdict verdict;
    } row[] = {{"compile-error", VERDICT_COMPILE_ERROR},
               {"rejected", VERDICT_REJECTED},
               {"crash", VERDICT_CRASH}};

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        if (strcmp(name, row[i].name) == 0) {
            return row[i].verdict;
        }
    }
    return VERDICT_REJECTED;
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
        char *reason = xstrdup(reply.reason ? reply.reason
                                            : "what was recorded makes no sense: there is neither "
                                              "a recording nor a reason why not");

        compile_result_clean(reason, strlen(reason));
        compile_result_refuse(s->compiled, verdict_of(reply.verdict ? reply.verdict : ""), reason);
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

    if (plan->role == COMPILE_REFERENCE && is_launcher(plan)) {
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
    rc = recorder_ask(recorder, &request, WALL_FACTOR * plan->max_seconds, REPLY_MAX, &report,
                      &reply, err);
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

int record_cuda(const struct compile_plan *plan, struct recorder *recorder,
                struct compile_outcome *ret, struct err *err)
{
    struct session s = {.plan = plan};
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
