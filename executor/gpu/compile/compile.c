// Design note. A source that specialises is compiled once for every set of values of the
// specialised params among the cases that it will meet: a candidate meets check, hidden and
// benchmark cases, a baseline only benchmark cases. Everything else is compiled once.
#include "executor/gpu/compile/compile.h"
#include "common/clock.h"
#include "executor/compile_result.h"
#include "executor/fact_list.h"
#include "executor/frame.h"
#include "executor/gpu/compile/cubin.h"
#include "executor/gpu/compile/features.h"
#include "problem/manifest.h"
#include "proto/verdict.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CASES_MAX (2 * PROBLEM_CASE_MAX + PROBLEM_HIDDEN_CASES)
#define QUOTE_MAX 400
#define PLAN_MAX ((size_t)16 << 20)

struct compilation {
    const struct compile_plan *plan;
    struct cuda_jail *jail;
    struct problem *problem;
    struct manifest *manifest;
    char *source; // NUL-terminated
    const char *name;
    struct compiled *compiled;
    struct cuda_object object;
};

// ---- which variants ----

static size_t collect_cases(const struct compilation *c, struct shape_case out[static CASES_MAX])
{
    const struct problem *problem = c->problem;
    size_t count = 0;

    for (size_t i = 0; i < problem->bench_count; i++) {
        out[count++] = problem->bench[i];
    }
    if (c->plan->role != COMPILE_CANDIDATE) {
        return count;
    }
    for (size_t i = 0; i < problem->check_count; i++) {
        out[count++] = problem->check[i];
    }
    if (problem->has_hidden) {
        count += problem_hidden_cases(problem, c->plan->hidden_seed, out + count);
    }
    return count;
}

// The values of the specialised params. Returns how many there are.
static size_t values_of(const struct compilation *c, const struct shape_case *shape,
                        uint64_t out[static PROBLEM_PARAM_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < c->problem->param_count; i++) {
        if (c->manifest->specialized[i]) {
            out[count++] = (uint64_t)shape->i[i];
        }
    }
    return count;
}

static bool is_there(const struct compilation *c, const uint64_t *values, size_t count)
{
    for (size_t i = 0; i < c->object.variants_count; i++) {
        if (count == 0 ||
            memcmp(c->object.variants[i].values, values, count * sizeof(*values)) == 0) {
            return true;
        }
    }
    return false;
}

// ---- one variant ----

static size_t kernel_names(const struct manifest *manifest, const char *out[static NVRTC_NAMES_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < manifest->launch_count; i++) {
        bool known = false;

        for (size_t k = 0; k < count; k++) {
            known = known || strcmp(out[k], manifest->launch[i].kernel) == 0;
        }
        if (!known && count < NVRTC_NAMES_MAX) {
            out[count++] = manifest->launch[i].kernel;
        }
    }
    return count;
}

// The first line of the log that says "error", cut; else that there is none.
static char *first_error(char *log)
{
    for (char *line = log; line && *line != '\0';) {
        char *end = strchr(line, '\n');
        int len = (int)(end ? end - line : (long)strlen(line));
        char *copy = xstrndup(line, (size_t)(len < QUOTE_MAX ? len : QUOTE_MAX));

        if (strstr(copy, "error")) {
            return copy;
        }
        free(copy);
        line = end ? end + 1 : NULL;
    }
    return xstrdup("the compiler refuses it without a word");
}

static bool fits(const struct manifest_arg *arg, uint64_t size)
{
    switch (arg->kind) {
    case ARG_TENSOR:
    case ARG_EXPECTED:
    case ARG_SCALE:
    case ARG_SCRATCH:
        return size == 8;
    case ARG_TENSORMAP:
        return size == 128;
    case ARG_INTEGER:
    case ARG_SCALAR:
        return size == 4 || size == 8;
    }
    return false;
}

static void check_arguments(struct compilation *c, const struct cuda_kernel *kernel)
{
    for (size_t i = 0; i < c->manifest->launch_count; i++) {
        const struct manifest_launch *launch = &c->manifest->launch[i];

        if (strcmp(launch->kernel, kernel->name) != 0) {
            continue;
        }
        if (launch->arg_count != kernel->sizes_count) {
            compile_result_refuse(
                c->compiled, VERDICT_COMPILE_ERROR,
                xasprintf("%s:%u: %s has %zu parameters, this line gives it %zu arguments", c->name,
                          launch->line, launch->kernel, kernel->sizes_count, launch->arg_count));
            return;
        }
        for (size_t k = 0; k < launch->arg_count; k++) {
            if (!fits(&launch->arg[k], kernel->sizes[k])) {
                compile_result_refuse(
                    c->compiled, VERDICT_COMPILE_ERROR,
                    xasprintf("%s:%u: argument %zu does not fit the parameter of %s, which has"
                              " %llu bytes",
                              c->name, launch->line, k + 1, launch->kernel,
                              (unsigned long long)kernel->sizes[k]));
                return;
            }
        }
    }
}

static int take_kernels(struct compilation *c, const struct nvrtc_input *input,
                        const struct nvrtc_output *output, struct cuda_variant *variant,
                        struct err *err)
{
    variant->kernels = xcalloc(input->name_count + 1, sizeof(*variant->kernels));
    for (size_t i = 0; i < input->name_count; i++) {
        struct cuda_kernel *kernel = &variant->kernels[i];

        message_init(&cuda_kernel_message, kernel);
        variant->kernels_count = i + 1;
        kernel->name = xstrdup(input->name[i]);
        kernel->symbol = xstrdup(output->symbol[i]);
        int rc = cubin_parameters(&variant->cubin, kernel->symbol, kernel, err);
        if (rc != 0) {
            return rc;
        }
        check_arguments(c, kernel);
    }
    return 0;
}

static int take_variant(struct compilation *c, const struct nvrtc_input *input,
                        struct nvrtc_output *output, struct cuda_variant *variant, struct err *err)
{
    variant->cubin = output->cubin;
    output->cubin = (struct bytes){.len = 0};
    char forbidden[64];
    int rc = cubin_forbidden(&variant->cubin, forbidden, err);
    if (rc != 0) {
        return rc;
    }
    if (forbidden[0] != '\0') {
        compile_result_refuse(
            c->compiled, VERDICT_REJECTED,
            xasprintf("it calls %s, which sealed candidates may not use", forbidden));
    }
    if (rc != 0) {
        return rc;
    }
    rc = take_kernels(c, input, output, variant, err);
    if (rc != 0) {
        return rc;
    }
    rc = cubin_globals(&variant->cubin, &variant->globals, &variant->globals_count, err);
    return rc;
}

static void add_features(struct compilation *c, const struct nvrtc_output *output,
                         const struct cuda_variant *variant)
{
    struct compiled *compiled = c->compiled;
    uint64_t code = 0, constants = 0;

    cuda_features(output, c->manifest, c->problem, &c->problem->bench[0], c->plan->facts,
                  c->plan->facts_count, &compiled->features, &compiled->features_count);
    struct err ignored = ERR_INIT;
    if (cubin_sizes(&variant->cubin, &code, &constants, &ignored) == 0) {
        fact_list_add(&compiled->features, &compiled->features_count, "code_bytes", (double)code);
        fact_list_add(&compiled->features, &compiled->features_count, "constant_bytes",
                      (double)constants);
    }
    fact_list_add(&compiled->features, &compiled->features_count, "source_bytes",
                  (double)c->plan->source.len);
    fact_list_add(&compiled->features, &compiled->features_count, "kernels",
                  (double)variant->kernels_count);
}

static void harness_end(struct compilation *c, enum cuda_jail_end end)
{
    if (end == CUDA_JAIL_TIMEOUT) {
        compile_result_refuse_slow(c->compiled, c->plan);
    } else if (end == CUDA_JAIL_DIED) {
        compile_result_refuse(
            c->compiled, VERDICT_COMPILE_ERROR,
            xasprintf("the compiler does not survive it, or needs more than the %llu MiB of"
                      " memory allowed",
                      (unsigned long long)(c->plan->max_memory >> 20)));
    }
}

static int compile_variant(struct compilation *c, const struct shape_case *shape,
                           const uint64_t *values, size_t value_count, struct err *err)
{
    struct cuda_jail_limits limits = {.seconds = c->plan->max_seconds,
                                      .memory = c->plan->max_memory,
                                      // Once per object: it takes longer than many a compilation.
                                      .disassemble = c->object.variants_count == 0 &&
                                                     c->plan->role != COMPILE_REFERENCE};
    const char *names[NVRTC_NAMES_MAX];
    struct nvrtc_input input = {.file = c->name, .target = c->plan->target, .name = names};
    struct strbuf text = STRBUF_INIT;

    manifest_specialize(c->manifest, c->problem, shape, &text);
    strbuf_adds(&text, "#line 1\n");
    strbuf_adds(&text, c->source);
    input.source = text.data;
    input.name_count = kernel_names(c->manifest, names);
    struct nvrtc_output output = {.compiled = false};
    enum cuda_jail_end end = CUDA_JAIL_DIED;
    int rc = cuda_jail_compile(c->jail, &input, &limits, &end, &output, err);
    harness_end(c, end);
    if (rc == 0 && end == CUDA_JAIL_DONE && !output.compiled) {
        compile_result_clean(output.log, strlen(output.log));
        compile_result_refuse(c->compiled, VERDICT_COMPILE_ERROR, first_error(output.log));
        if (!c->compiled->log) {
            c->compiled->log = xstrndup(output.log, 65000);
        }
    }
    struct cuda_variant *variant;
    if (rc == 0 && c->compiled->verdict == VERDICT_NONE) {
        variant = &c->object.variants[c->object.variants_count++];
        message_init(&cuda_variant_message, variant);
        variant->values = xcalloc(value_count + 1, sizeof(*values));
        memcpy(variant->values, values, value_count * sizeof(*values));
        variant->values_count = value_count;
        rc = take_variant(c, &input, &output, variant, err);
        if (rc == 0 && c->object.variants_count == 1) {
            add_features(c, &output, variant);
        }
    }
    nvrtc_output_release(&output);
    strbuf_release(&text);
    return rc;
}

static int compile_variants(struct compilation *c, struct err *err)
{
    struct shape_case shape[CASES_MAX];
    size_t count = collect_cases(c, shape);

    c->object.variants = xcalloc(count, sizeof(*c->object.variants));
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0 && c->compiled->verdict == VERDICT_NONE; i++) {
        uint64_t values[PROBLEM_PARAM_MAX];
        size_t value_count = values_of(c, &shape[i], values);

        if (!is_there(c, values, value_count)) {
            rc = compile_variant(c, &shape[i], values, value_count, err);
        }
    }
    return rc;
}

// ---- from outside ----

static int take_object(struct compilation *c, struct bytes *ret, struct err *err)
{
    struct strbuf packed;

    strbuf_init(&packed, (size_t)32 << 20);
    c->object.source = c->plan->source;
    c->object.target = c->plan->target;
    int rc = message_pack(&cuda_object_message, &c->object, &packed, err);
    c->object.source = (struct bytes){.len = 0};
    c->object.target = NULL;
    if (rc == 0 && (packed.truncated || packed.len > c->plan->max_output)) {
        compile_result_refuse_large(c->compiled, c->plan);
    } else if (rc == 0) {
        c->compiled->object = digest_of(packed.data, packed.len);
        *ret = strbuf_detach_bytes(&packed);
    }
    strbuf_release(&packed);
    return rc;
}

static int compile_all(struct compilation *c, struct bytes *ret_object, struct err *err)
{
    const struct compile_plan *plan = c->plan;
    int rc = problem_parse(&c->problem, (const char *)plan->problem.data, plan->problem.len,
                           "problem.json", err);

    if (rc == 0 && !c->problem->cuda) {
        rc = err_set(err, ERR_INVALID, "the problem is none for CUDA");
    }
    if (rc != 0) {
        return rc;
    }
    struct err why = ERR_INIT;
    if (manifest_parse(
            &c->manifest, (const char *)plan->source.data, plan->source.len, c->name, c->problem,
            plan->role == COMPILE_REFERENCE ? MANIFEST_REFERENCE : MANIFEST_CANDIDATE, &why) != 0) {
        compile_result_refuse(c->compiled, VERDICT_COMPILE_ERROR, xstrdup(why.text));
        return 0;
    }
    c->source = xstrndup((const char *)plan->source.data, plan->source.len);
    rc = compile_variants(c, err);
    return rc == 0 && c->compiled->verdict == VERDICT_NONE ? take_object(c, ret_object, err) : rc;
}

int compile_cuda(const struct compile_plan *plan, struct cuda_jail *jail,
                 struct compile_outcome *ret, struct err *err)
{
    struct compilation c = {
        .plan = plan, .jail = jail, .name = plan->name ? plan->name : "candidate.cu"};
    uint64_t begin = clock_now_ns(&clock_system);

    if (!plan->target || !plan->problem.data) {
        return err_set(err, ERR_INVALID, "the plan has no target or no problem");
    }
    message_init(&compile_outcome_message, ret);
    message_init(&cuda_object_message, &c.object);
    c.compiled = ret->compiled = xmalloc(sizeof(*ret->compiled));
    message_init(&compiled_message, c.compiled);
    int rc = compile_all(&c, &ret->object, err);
    if (rc == 0) {
        c.compiled->seconds = clock_seconds(clock_now_ns(&clock_system) - begin);
        c.compiled->sandbox = xstrdup(plan->sandbox_off ? "off" : "on");
    } else {
        message_clear(&compile_outcome_message, ret);
    }
    message_clear(&cuda_object_message, &c.object);
    manifest_free(c.manifest);
    problem_free(c.problem);
    free(c.source);
    return rc;
}

// ---- serving ----

struct server {
    struct sandbox_filter filter;
    struct zygote zygote;
    struct cuda_jail jail;
    char *toolchain;
};

static int server_start(struct server *server, bool sandbox_off, struct err *err)
{
    struct toolkit toolkit;
    int rc = toolkit_find(&toolkit, err);

    if (rc != 0) {
        return rc;
    }
    rc = zygote_create(&server->zygote, cuda_jail_child, &server->filter, err);
    cuda_jail_init(&server->jail, &server->zygote, &toolkit, sandbox_off);
    return rc == 0 ? cuda_jail_warm(&server->jail, err) : rc;
}

static void server_stop(struct server *server)
{
    cuda_jail_release(&server->jail);
    zygote_release(&server->zygote);
    server->zygote = (struct zygote){.socket = -1};
}

static int answer(void *owner, const struct bytes *packed_plan, struct bytes *ret, bool *ret_last,
                  struct err *err)
{
    struct server *server = owner;
    struct compile_outcome outcome;
    struct compile_plan plan;
    int rc = message_read(&compile_plan_message, &plan, packed_plan->data, packed_plan->len, err);

    *ret_last = false;
    if (rc != 0) {
        return rc;
    }
    struct strbuf packed;
    strbuf_init(&packed, (size_t)64 << 20);
    if (plan.sandbox_off != server->jail.sandbox_off) { // for development: not what was prepared
        server_stop(server);
        rc = server_start(server, plan.sandbox_off, err);
    }
    if (rc != 0) {
        goto out;
    }
    rc = compile_cuda(&plan, &server->jail, &outcome, err);
    if (rc != 0) {
        goto out;
    }
    outcome.compiled->toolchain = xstrdup(server->toolchain);
    rc = message_pack(&compile_outcome_message, &outcome, &packed, err);
    message_clear(&compile_outcome_message, &outcome);
    if (rc != 0) {
        goto out;
    }
    *ret = strbuf_detach_bytes(&packed);
out:
    strbuf_release(&packed);
    message_clear(&compile_plan_message, &plan);
    return rc;
}

int serve_cuda_compile(struct err *err)
{
    struct server server = {.zygote = {.socket = -1}, .jail = {.socket = -1, .memory_fd = -1}};
    struct err why = ERR_INIT;
    int rc = sandbox_filter_build(&server.filter, STAGE_COMPILE, err);

    if (rc != 0) {
        goto out;
    }
    rc = nvrtc_toolchain(&server.toolchain, err);
    // Where there is no sandbox to be had, a plan may do without.
    if (rc != 0) {
        goto out;
    }
    if (server_start(&server, false, &why) != 0) {
        server_stop(&server);
        rc = server_start(&server, true, &why) == 0 ? 0 : err_set(err, why.code, "%s", why.text);
    }
    if (rc != 0) {
        goto out;
    }
    rc = frame_serve(STDIN_FILENO, STDOUT_FILENO, PLAN_MAX, answer, &server, err);
out:
    server_stop(&server);
    sandbox_filter_release(&server.filter);
    free(server.toolchain);
    return rc;
}
