// Arbitrary text as the source of a sealed candidate, or of a reference when its first byte is 'R'.
// What is accepted is accepted again with the same result. Its indices are within the problem, and
// what evaluates is within the limits of problem/manifest.h. Refusals name a place.
#include "common/strbuf.h"
#include "problem/manifest.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char problem_text[] =
    "{\"name\": \"p\", \"title\": \"t\", \"license\": \"MIT\", \"language\": \"cuda\","
    "\"params\": [{\"name\": \"rows\", \"type\": \"int\"}, {\"name\": \"eps\", \"type\": \"f64\"},"
    "{\"name\": \"cols\", \"type\": \"int\"}], \"tensors\": ["
    "{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"bf16\", \"shape\": [\"rows\", \"cols\"],"
    "\"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"rows\"], "
    "\"tolerance\": 4},"
    "{\"name\": \"z\", \"direction\": \"inout\", \"dtype\": \"f32\", \"shape\": [\"rows\"], "
    "\"tolerance\": 4,"
    "\"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}}],"
    "\"cases\": {\"check\": [{\"rows\": 7, \"cols\": 100, \"eps\": 0.5}],"
    "\"bench\": [{\"params\": {\"rows\": 64, \"cols\": 4096, \"eps\": 0.5}, \"weight\": 1}]},"
    "\"cache\": \"cold\", \"work\": {\"flops\": \"rows*cols\", \"bytes\": \"2*rows*cols\"}}";

static void require(bool truth)
{
    if (!truth) {
        abort();
    }
}

static void check_args(const struct manifest *m, const struct manifest_launch *launch,
                       const struct problem *problem)
{
    for (size_t i = 0; i < launch->arg_count; i++) {
        const struct manifest_arg *arg = &launch->arg[i];
        size_t limit = arg->kind == ARG_SCRATCH     ? m->scratch_count
                       : arg->kind == ARG_TENSORMAP ? m->tensormap_count
                       : arg->kind == ARG_SCALAR    ? problem->param_count
                       : arg->kind == ARG_INTEGER   ? 1
                                                    : problem->tensor_count;
        require(arg->index < limit && (!!arg->expr) == (arg->kind == ARG_INTEGER));
    }
}

static void check_case(const struct manifest *m, const struct problem *problem,
                       const struct shape_case *shape)
{
    for (size_t i = 0; i < m->launch_count; i++) {
        struct manifest_shape s, again;
        struct err err = ERR_INIT;
        if (manifest_launch_shape(m, i, shape, problem, &s, &err) != 0) {
            require(err.code == ERR_INVALID && err.text[0] != '\0');
            continue;
        }
        require(manifest_launch_shape(m, i, shape, problem, &again, NULL) == 0 &&
                memcmp(&s, &again, sizeof s) == 0);
        if (s.skipped) {
            continue;
        }
        require(s.grid[0] >= 1 && s.grid[1] >= 1 && s.grid[2] >= 1 && s.grid[1] <= 65535 &&
                s.grid[2] <= 65535);
        require(s.block[0] >= 1 && s.block[1] >= 1 && s.block[2] >= 1 &&
                (uint64_t)s.block[0] * s.block[1] * s.block[2] <= 1024);
        require((!m->launch[i].cluster[0]) == (s.cluster[0] == 0) && s.smem <= 1 << 20);
    }
    for (size_t i = 0; i < m->scratch_count; i++) {
        int64_t value = 0;
        if (manifest_eval(m, m->scratch[i].bytes, shape, problem, &value, NULL) == 0) {
            require(m->scratch[i].name);
        }
    }
}

static void check(const struct manifest *m, const struct problem *problem)
{
    require(m->launch_count >= 1 && m->launch_count <= MANIFEST_LAUNCH_MAX);
    for (size_t i = 0; i < m->launch_count; i++) {
        require(strlen(m->launch[i].kernel) <= MANIFEST_KERNEL_MAX &&
                m->launch[i].arg_count <= MANIFEST_ARG_MAX);
        check_args(m, &m->launch[i], problem);
    }
    for (size_t i = 0; i < m->tensormap_count; i++) {
        for (size_t k = 0; k < problem->tensor[m->tensormap[i].tensor].rank; k++) {
            require(m->tensormap[i].box[k]);
        }
    }
    check_case(m, problem, &problem->check[0]);
    check_case(m, problem, &problem->bench[0]);
    struct strbuf out = STRBUF_INIT;
    manifest_specialize(m, problem, &problem->bench[0], &out);
    require((out.len > 0) == m->specializes && !m->specialized[1]);
    strbuf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct problem *problem;
    enum manifest_role role = size > 0 && data[0] == 'R' ? MANIFEST_REFERENCE : MANIFEST_CANDIDATE;
    const char *source = size > 0 ? (const char *)data : "";
    struct manifest *m = NULL, *again = NULL;

    if (!problem) {
        require(problem_parse(&problem, problem_text, strlen(problem_text), "p.json", NULL) == 0);
    }
    if (size > 0 && role == MANIFEST_REFERENCE) {
        source++;
        size--;
    }
    struct err err = ERR_INIT;
    int rc = manifest_parse(&m, source, size, "k.cu", problem, role, &err);
    require(manifest_parse(&again, source, size, "k.cu", problem, role, NULL) == rc);
    if (rc != 0) {
        require(rc == ERR_INVALID && strncmp(err.text, "k.cu:", 5) == 0);
    } else {
        require(again->launch_count == m->launch_count &&
                again->constant_count == m->constant_count);
        check(m, problem);
        check(again, problem);
    }
    manifest_free(m);
    manifest_free(again);
    return 0;
}
