#include "daemon/run/compile_input.h"
#include "common/version.h"
#include "daemon/store/cache.h"
#include "proto/messages.h"
#include <string.h>

uint64_t compile_input_wall_seconds(const struct daemon_limits *limits)
{
    return limits->compile_seconds * COMPILER_WALL_FACTOR;
}

bool compile_input_is_cuda(const struct compile_input *input)
{
    return strcmp(input->device_class->language, "cuda") == 0;
}

struct digest compile_input_key(const struct compile_input *input, bool sandbox_off)
{
    struct digest_state *state = digest_begin();
    unsigned char role = (unsigned char)input->role;

    digest_add(state, input->source.byte, DIGEST_LEN);
    digest_add_text(state, input->header);
    digest_add_text(state, input->glue);
    digest_add_text(state, COMPILER_FLAGS);
    digest_add_text(state, KCAST_VERSION); // kcast-exec has flags of its own
    digest_add_text(state, input->device_class->toolchain);
    digest_add_text(state, input->device_class->name);
    digest_add_text(state, sandbox_off ? "off" : "on");
    if (compile_input_is_cuda(input)) {
        digest_add_text(state, COMPILER_CUDA_METHOD);
        digest_add_text(state, input->device_class->target);
        digest_add(state, input->problem.byte, DIGEST_LEN);
        digest_add(state, &role, sizeof(role));
        digest_add(state, &input->hidden_seed, sizeof(input->hidden_seed));
        if (input->unsealed) {
            digest_add_text(state, "unsealed");
        }
    }
    return digest_end(state);
}

static void add_known(struct compile_plan *plan, const struct compile_input *input,
                      const struct compile_known *known, struct bytes *object)
{
    bool has_features = known->machine_code || !input->machine_code;

    plan->known = bytes_take(object);
    plan->no_machine_code = !input->machine_code && !known->machine_code;
    if (has_features) {
        plan->known_features =
            message_copy_all(&fact_message, known->features, known->features_count);
        plan->known_features_count = known->features_count;
    }
}

struct bytes compile_input_plan(const struct compile_input *input,
                                const struct daemon_limits *limits,
                                const struct compile_known *known, struct bytes *blobs)
{
    struct compile_plan plan;

    message_init(&compile_plan_message, &plan);
    plan.source = bytes_take(&blobs[0]);
    plan.header = xstrdup(input->header);
    plan.glue = xstrdup(input->glue);
    plan.flags = COMPILER_FLAGS[0] ? xstrdup(COMPILER_FLAGS) : NULL;
    plan.max_seconds = (double)limits->compile_seconds;
    plan.wall_seconds = (double)compile_input_wall_seconds(limits);
    plan.max_memory = COMPILER_MEMORY_MAX;
    plan.max_output = COMPILER_OUTPUT_MAX;
    plan.sandbox_off = limits->sandbox_off;
    plan.name = xstrdup(input->name);
    if (compile_input_is_cuda(input)) {
        plan.language = xstrdup("cuda");
        plan.target = xstrdup(input->device_class->target);
        plan.problem = bytes_take(&blobs[1]);
        plan.role = input->role;
        plan.hidden_seed = input->hidden_seed;
        plan.facts_count = input->device_class->facts_count;
        plan.facts = message_copy_all(&fact_message, input->device_class->facts, plan.facts_count);
        plan.features_only = input->features_only;
        plan.no_machine_code = !input->machine_code;
        plan.device = input->device ? xstrdup(input->device) : NULL;
        plan.unsealed = input->unsealed;
        plan.width = input->width;
        plan.python = limits->python ? xstrdup(limits->python) : NULL;
        if (!digest_is_zero(&known->object)) {
            add_known(&plan, input, known, &blobs[2]);
        }
    }
    struct bytes packed = cache_pack(&compile_plan_message, &plan);
    message_clear(&compile_plan_message, &plan);
    return packed;
}
