// Design note. A source is CUDA C++, PTX, or a cubin in base64 (problem/candidate_form.h); the jail
// makes a cubin of it, and what comes then is the same for all. What a cubin says may be made up:
// one that makes no sense is a compile error.
//
// A source that specialises on parameters is compiled once for every set of values
// that the cases have which it will meet: check, hidden and benchmark cases for a candidate,
// benchmark cases for a baseline or a reference. Every other source is compiled once. The first
// variant that is refused ends the compilation, and its reason is the outcome's.
//
// Each variant may use max_seconds of processor time, and all of them VARIANTS_SECONDS times as
// much. The wall time is that of all variants together, since the daemon waits for all of them.
//
// The first variant is compiled alone, because most sources that are refused are refused there. The
// others are compiled plan->width at a time; what comes of them is taken in the order of the cases,
// so that the outcome does not depend on how many that is.
//
// Features are those of the first variant, the one of the first benchmark case. A plan for features
// alone therefore gets an incomplete object, which has no other variant. A later plan gives that
// object as `known`, and only the variants that it lacks are compiled. Variants stand in the order
// of the cases in either way, so that the object is the same as if it had been made at once.
#include "executor/gpu/compile/compile.h"
#include "common/clock.h"
#include "executor/compile_result.h"
#include "executor/fact_list.h"
#include "executor/gpu/cases.h"
#include "executor/gpu/compile/cubin.h"
#include "executor/gpu/compile/features.h"
#include "executor/gpu/compile/refusal.h"
#include "executor/gpu/compile/variant.h"
#include "problem/candidate_form.h"
#include "problem/manifest.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIANTS_SECONDS 4

// A variant that the object is to have.
struct variant_task {
    const struct shape_case *shape; // the first case that needs it
    uint64_t values[PROBLEM_PARAM_MAX];
    size_t value_count;
    const struct cuda_variant *known; // compiled before; NULL: to be compiled
    size_t server;                    // of the jail, that compiles it
    const char *names[NVRTC_NAMES_MAX];
    struct nvrtc_input input;
    struct strbuf text; // of the input
};

struct compilation {
    const struct compile_plan *plan;
    struct cuda_jail *jail;
    struct problem *problem;
    struct manifest *manifest;
    char *source;              // NUL-terminated, owned
    const char *name;          // of the source, for messages
    enum candidate_form form;  // of the source
    struct compiled *compiled; // the facts, part of the caller's outcome
    struct cuda_object object;
    struct cuda_object known; // variants that need not be compiled; empty: none
    uint64_t begin_ns;
    double cpu_seconds; // of all variants so far
};

// ---- which variants ----

// Collects the values of the specialised parameters. Returns how many there are.
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

// The object's variant for these values; NULL when it has none.
static const struct cuda_variant *find_variant(const struct cuda_object *object,
                                               const uint64_t *values, size_t count)
{
    for (size_t i = 0; i < object->variants_count; i++) {
        const struct cuda_variant *variant = &object->variants[i];

        if (variant->values_count == count &&
            (count == 0 || memcmp(variant->values, values, count * sizeof(*values)) == 0)) {
            return variant;
        }
    }
    return NULL;
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

static void add_features(struct compilation *c, const struct nvrtc_output *output,
                         const struct cuda_variant *variant)
{
    struct compiled *compiled = c->compiled;
    uint64_t code = 0, constants = 0;

    cuda_features(output, &variant->cubin, c->manifest, c->problem, &c->problem->bench[0],
                  c->plan->facts, c->plan->facts_count, &compiled->features,
                  &compiled->features_count);
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

static void add_variant(struct compilation *c, const struct nvrtc_input *input,
                        struct nvrtc_output *output, const uint64_t *values, size_t value_count)
{
    struct cuda_variant *variant = &c->object.variants[c->object.variants_count++];

    message_init(&cuda_variant_message, variant);
    variant->values = xcalloc(value_count + 1, sizeof(*values));
    memcpy(variant->values, values, value_count * sizeof(*values));
    variant->values_count = value_count;
    variant_take(&(struct variant_source){.name = c->name,
                                          .target = c->plan->target,
                                          .manifest = c->manifest,
                                          .compiled = c->compiled},
                 input, output, variant);
    if (c->object.variants_count == 1) {
        add_features(c, output, variant);
    }
}

// Refuses the source when its variants together have used too much processor time.
static void add_seconds(struct compilation *c, double seconds)
{
    c->cpu_seconds += seconds;
    if (c->cpu_seconds > VARIANTS_SECONDS * c->plan->max_seconds) {
        compile_result_refuse(
            c->compiled, VERDICT_COMPILE_ERROR,
            xasprintf("compiling its variants takes longer than the %g seconds of processor time "
                      "allowed to all of them together",
                      VARIANTS_SECONDS * c->plan->max_seconds));
    }
}

static int begin_variant(struct compilation *c, struct variant_task *task, bool first,
                         struct err *err)
{
    double passed = clock_seconds(clock_now_ns(&clock_system) - c->begin_ns);
    struct cuda_jail_limits limits = {.cpu_seconds = c->plan->max_seconds,
                                      .wall_seconds = fmax(c->plan->wall_seconds - passed, 0),
                                      .memory = c->plan->max_memory,
                                      // Once per object, because it takes long.
                                      .disassemble = first && c->plan->role == COMPILE_CANDIDATE &&
                                                     !c->plan->no_machine_code};
    if (c->form == FORM_SEALED) {
        manifest_specialize(c->manifest, c->problem, task->shape, &task->text);
        strbuf_adds(&task->text, "#line 1\n");
    }
    strbuf_adds(&task->text, c->source);
    task->input = (struct nvrtc_input){.form = c->form,
                                       .file = c->name,
                                       .target = c->plan->target,
                                       .source = task->text.data,
                                       .name = task->names,
                                       .name_count = kernel_names(c->manifest, task->names)};
    return cuda_jail_begin(c->jail, task->server, &task->input, &limits, err);
}

// Waits for a variant that has been begun, and adds it unless it is refused.
static int end_variant(struct compilation *c, struct variant_task *task, struct err *err)
{
    struct nvrtc_output output = {.compiled = false};
    struct cuda_jail_report report;
    int rc = cuda_jail_end(c->jail, task->server, &report, &output, err);

    if (rc != 0) {
        goto out;
    }
    if (report.end == CUDA_JAIL_TIMEOUT && !refusal_is_slow(c->plan, &report)) {
        rc = compile_result_stalled(c->plan, c->cpu_seconds + report.cpu_seconds, err);
        goto out;
    }
    refusal_by_end(c->compiled, c->plan, &report);
    if (report.end == CUDA_JAIL_DONE && !output.compiled) {
        refusal_by_log(c->compiled, c->plan, &output, &report);
    }
    add_seconds(c, report.cpu_seconds);
    if (c->compiled->verdict == VERDICT_NONE) {
        add_variant(c, &task->input, &output, task->values, task->value_count);
    }
out:
    nvrtc_output_release(&output);
    return rc;
}

// Says for which case the source was refused, since it compiles for the first benchmark case.
static void name_case(struct compilation *c, const struct shape_case *shape)
{
    struct strbuf name = STRBUF_INIT;

    problem_case_name(c->problem, shape, &name);
    char *reason = xasprintf("for the case %s: %s", strbuf_text(&name), c->compiled->reason);
    free(c->compiled->reason);
    c->compiled->reason = reason;
    strbuf_release(&name);
}

// Takes a variant over that was compiled before, the first one with the features.
static void take_known(struct compilation *c, const struct cuda_variant *known)
{
    const struct compile_plan *plan = c->plan;

    message_copy(&cuda_variant_message, &c->object.variants[c->object.variants_count++], known);
    for (size_t i = 0; c->object.variants_count == 1 && i < plan->known_features_count; i++) {
        const struct fact *fact = &plan->known_features[i];

        fact_list_add(&c->compiled->features, &c->compiled->features_count, fact->name,
                      fact->value);
    }
}

// Lists the variants that the object is to have, in the order of the cases. Returns how many.
static size_t list_variants(struct compilation *c, const struct shape_case *shape, size_t count,
                            struct variant_task *list)
{
    size_t listed = 0;

    for (size_t i = 0; i < count; i++) {
        struct variant_task *task = &list[listed];
        bool first = listed == 0, there = false;

        *task = (struct variant_task){.shape = &shape[i], .text = STRBUF_INIT};
        task->value_count = values_of(c, &shape[i], task->values);
        for (size_t k = 0; k < listed; k++) {
            there = there || memcmp(list[k].values, task->values, sizeof(task->values)) == 0;
        }
        if (there) {
            continue;
        }
        task->known = find_variant(&c->known, task->values, task->value_count);
        if (first && c->plan->known_features_count == 0) {
            task->known = NULL; // compiled again, for its features
        }
        if (!task->known && !first && c->plan->features_only) {
            c->compiled->incomplete = true;
            continue;
        }
        listed++;
    }
    return listed;
}

// Begins to compile what comes next, as far as servers are free. The first variant is alone.
// *begun: the variants before it are known or have been begun.
static int begin_next(struct compilation *c, struct variant_task *list, size_t count, size_t width,
                      size_t *begun, struct err *err)
{
    int rc = 0;

    while (*begun < count && rc == 0) {
        struct variant_task *task = &list[*begun];
        size_t server = 0;

        while (!task->known && server < width && c->jail->server[server].busy) {
            server++;
        }
        if (server == width || (*begun > 0 && c->object.variants_count == 0)) {
            break;
        }
        task->server = server;
        rc = task->known ? 0 : begin_variant(c, task, *begun == 0, err);
        *begun += rc == 0;
    }
    return rc;
}

// How many are compiled at once.
static size_t width_of(const struct compilation *c, const struct variant_task *list, size_t count)
{
    size_t most = c->plan->width < CUDA_JAIL_SERVERS ? c->plan->width : CUDA_JAIL_SERVERS;
    size_t width = 0;

    for (size_t i = 0; i < count && width < most; i++) {
        width += !list[i].known;
    }
    return width > 1 ? width : 1;
}

static int compile_variants(struct compilation *c, struct err *err)
{
    struct shape_case shape[GPU_CASES_MAX];
    struct variant_task *list = xcalloc(GPU_CASES_MAX, sizeof(*list));
    size_t count = list_variants(
        c, shape,
        gpu_cases(c->problem, (enum compile_role)c->plan->role, c->plan->hidden_seed, shape), list);
    size_t width = width_of(c, list, count), begun = 0;

    c->object.variants = xcalloc(count, sizeof(*c->object.variants));
    int rc = width > 1 ? cuda_jail_widen(c->jail, width, err) : 0;
    for (size_t i = 0; i < count && rc == 0 && c->compiled->verdict == VERDICT_NONE; i++) {
        rc = begin_next(c, list, count, width, &begun, err);
        if (rc == 0 && list[i].known) {
            take_known(c, list[i].known);
        } else if (rc == 0) {
            rc = end_variant(c, &list[i], err);
        }
        if (rc == 0 && i > 0 && c->compiled->verdict != VERDICT_NONE) {
            name_case(c, list[i].shape);
        }
    }
    cuda_jail_abandon(c->jail);
    for (size_t i = 0; i < count; i++) {
        strbuf_release(&list[i].text);
    }
    free(list);
    return rc;
}

// ---- the whole object ----

static int take_object(struct compilation *c, struct bytes *ret, struct err *err)
{
    struct strbuf packed;

    strbuf_init(&packed, c->plan->max_output);
    c->object.source = c->plan->source;
    c->object.target = c->plan->target;
    int rc = message_pack(&cuda_object_message, &c->object, &packed, err);
    c->object.source = (struct bytes){.len = 0};
    c->object.target = NULL;
    if (packed.truncated) {
        compile_result_refuse_large(c->compiled, c->plan->max_output);
        rc = 0;
    } else if (rc == 0) {
        c->compiled->object = digest_of(packed.data, packed.len);
        *ret = strbuf_detach_bytes(&packed);
    }
    strbuf_release(&packed);
    return rc;
}

// Reads the object whose variants are known.
static int read_known(struct compilation *c, struct err *err)
{
    const struct compile_plan *plan = c->plan;
    struct cuda_object known;

    if (plan->known.len == 0) {
        return 0;
    }
    int rc = message_read(&cuda_object_message, &known, plan->known.data, plan->known.len, err);
    if (rc != 0) {
        return err_wrap(err, "the known object");
    }
    if (strcmp(known.target, plan->target) != 0 || known.source.len != plan->source.len ||
        memcmp(known.source.data, plan->source.data, plan->source.len) != 0) {
        message_clear(&cuda_object_message, &known);
        return err_set(err, ERR_INVALID, "the known object is of another source or target");
    }
    c->known = known;
    return 0;
}

// Refuses what the form of a source does not have, before its manifest is read.
static void check_form(struct compilation *c)
{
    const struct bytes *source = &c->plan->source;

    if (c->form == FORM_CUBIN && memchr(source->data, '\0', source->len)) {
        compile_result_refuse(
            c->compiled, VERDICT_COMPILE_ERROR,
            xstrdup("candidate.cubin: it is a bare cubin, which has no launch manifest; write one "
                    "before it by: { cat FILE.manifest; base64 FILE.cubin; }"));
    }
}

// Refuses a line of the manifest that only a source of CUDA C++ can have.
static void check_specialised(struct compilation *c)
{
    for (size_t i = 0; i < c->problem->param_count; i++) {
        if (c->form != FORM_SEALED && c->manifest->specialized[i]) {
            compile_result_refuse(
                c->compiled, VERDICT_COMPILE_ERROR,
                xasprintf("%s: it was compiled before its cases were known, so it cannot "
                          "specialize; leave out the line and pass %s as an argument",
                          c->name, c->problem->param[i].name));
        }
    }
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
    check_form(c);
    if (c->compiled->verdict != VERDICT_NONE) {
        return 0;
    }
    struct err why = ERR_INIT;
    if (manifest_parse(
            &c->manifest, (const char *)plan->source.data, plan->source.len, c->name, c->problem,
            plan->role == COMPILE_REFERENCE ? MANIFEST_REFERENCE : MANIFEST_CANDIDATE, &why) != 0) {
        compile_result_refuse(c->compiled, VERDICT_COMPILE_ERROR, xstrdup(why.text));
        return 0;
    }
    check_specialised(c);
    if (c->compiled->verdict != VERDICT_NONE) {
        return 0;
    }
    c->source = xstrndup((const char *)plan->source.data, plan->source.len);
    rc = read_known(c, err);
    if (rc != 0) {
        return rc;
    }
    c->compiled->no_machine_code = plan->no_machine_code;
    rc = compile_variants(c, err);
    return rc == 0 && c->compiled->verdict == VERDICT_NONE ? take_object(c, ret_object, err) : rc;
}

// What the source is called in sentences. The plan's name is that of a source of CUDA C++.
static const char *name_of(const struct compile_plan *plan, enum candidate_form form)
{
    return form == FORM_PTX     ? "candidate.ptx"
           : form == FORM_CUBIN ? "candidate.cubin"
           : plan->name         ? plan->name
                                : "candidate.cu";
}

int compile_cuda(const struct compile_plan *plan, struct cuda_jail *jail,
                 struct compile_outcome *ret, struct err *err)
{
    struct compilation c = {
        .plan = plan,
        .jail = jail,
        .form = candidate_form((const char *)plan->source.data, plan->source.len),
        .begin_ns = clock_now_ns(&clock_system),
    };

    if (!plan->target || !plan->problem.data) {
        return err_set(err, ERR_INVALID, "the plan has no target or no problem");
    }
    c.name = name_of(plan, c.form);
    message_init(&compile_outcome_message, ret);
    message_init(&cuda_object_message, &c.object);
    message_init(&cuda_object_message, &c.known);
    c.compiled = ret->compiled = xmalloc(sizeof(*ret->compiled));
    message_init(&compiled_message, c.compiled);
    int rc = compile_all(&c, &ret->object, err);
    if (rc == 0) {
        c.compiled->seconds = clock_seconds(clock_now_ns(&clock_system) - c.begin_ns);
        c.compiled->sandbox = xstrdup(plan->sandbox_off ? "off" : "on");
    } else {
        message_clear(&compile_outcome_message, ret);
    }
    message_clear(&cuda_object_message, &c.object);
    message_clear(&cuda_object_message, &c.known);
    manifest_free(c.manifest);
    problem_free(c.problem);
    free(c.source);
    return rc;
}
