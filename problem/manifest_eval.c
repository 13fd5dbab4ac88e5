// Evaluates a manifest for one case. Every value is bounded here by what any CUDA device accepts,
// so that later code neither multiplies nor narrows it unchecked.
#include "common/strbuf.h"
#include "problem/manifest.h"
#include <string.h>

#define VALUE_MAX (PROBLEM_PARAM_MAX + MANIFEST_CONSTANT_MAX) // params, then macros

int manifest_eval(const struct manifest *manifest, const struct expr *expr,
                  const struct shape_case *shape, const struct problem *problem, int64_t *ret,
                  struct err *err)
{
    int64_t value[VALUE_MAX];

    memcpy(value, shape->i, problem->param_count * sizeof(*value));
    memcpy(value + problem->param_count, manifest->constant,
           manifest->constant_count * sizeof(*value));
    return expr_eval(ret, expr, value, err);
}

// The limits of three extents.
struct extent {
    const char *what; // for error sentences
    int64_t most[3];  // of x, y and z
};

// Evaluates three extents. One that is not given is 1.
static int eval_three(const struct manifest *manifest, struct expr *const three[static 3],
                      const struct extent *extent, const struct manifest_launch *launch,
                      const struct shape_case *shape, const struct problem *problem,
                      uint32_t ret[static 3], struct err *err)
{
    for (size_t i = 0; i < 3; i++) {
        int64_t value = 1;
        int rc = !three[i] ? 0 : manifest_eval(manifest, three[i], shape, problem, &value, err);

        if (rc != 0) {
            return err_wrap(err, "%s, %s", launch->kernel, extent->what);
        }
        long long most = extent->most[i];
        if (value < 1 || value > most) {
            return err_set(err, ERR_INVALID, "%s: %s %c is %lld, not between 1 and %lld",
                           launch->kernel, extent->what, "xyz"[i], (long long)value, most);
        }
        ret[i] = (uint32_t)value;
    }
    return 0;
}

static int eval_cluster(const struct manifest *manifest, const struct manifest_launch *launch,
                        const struct shape_case *shape, const struct problem *problem,
                        struct manifest_shape *out, struct err *err)
{
    static const struct extent extent = {"cluster", {16, 16, 16}};
    int rc =
        eval_three(manifest, launch->cluster, &extent, launch, shape, problem, out->cluster, err);

    if (rc != 0) {
        return rc;
    }
    if (out->cluster[0] * out->cluster[1] * out->cluster[2] > 16 ||
        out->grid[0] % out->cluster[0] != 0 || out->grid[1] % out->cluster[1] != 0 ||
        out->grid[2] % out->cluster[2] != 0) {
        return err_set(err, ERR_INVALID,
                       "%s: a cluster has at most 16 blocks, and the grid is a multiple of it",
                       launch->kernel);
    }
    return 0;
}

int manifest_launch_shape(const struct manifest *manifest, size_t index,
                          const struct shape_case *shape, const struct problem *problem,
                          struct manifest_shape *ret, struct err *err)
{
    static const struct extent grid = {"grid", {2147483647, 65535, 65535}};
    static const struct extent block = {"block", {1024, 1024, 64}};
    const struct manifest_launch *launch = &manifest->launch[index];
    struct manifest_shape out = {.skipped = false};

    if (launch->condition) {
        int64_t value = 1;
        int rc = manifest_eval(manifest, launch->condition, shape, problem, &value, err);

        if (rc != 0) {
            return rc;
        }
        if (value == 0) {
            out.skipped = true;
            *ret = out;
            return 0;
        }
    }
    int rc = eval_three(manifest, launch->grid, &grid, launch, shape, problem, out.grid, err);
    if (rc != 0) {
        return rc;
    }
    rc = eval_three(manifest, launch->block, &block, launch, shape, problem, out.block, err);
    if (rc != 0) {
        return rc;
    }
    if (out.block[0] * out.block[1] * out.block[2] > 1024) {
        return err_set(err, ERR_INVALID, "%s: a block has at most 1024 threads", launch->kernel);
    }
    if (launch->cluster[0]) {
        rc = eval_cluster(manifest, launch, shape, problem, &out, err);
        if (rc != 0) {
            return rc;
        }
    }
    int64_t smem = 0;
    if (launch->smem) {
        rc = manifest_eval(manifest, launch->smem, shape, problem, &smem, err);
        if (rc != 0) {
            return rc;
        }
    }
    if (smem < 0 || smem > 1 << 20) {
        return err_set(err, ERR_INVALID, "%s: smem is %lld, not between 0 and 1048576",
                       launch->kernel, (long long)smem);
    }
    out.smem = (uint32_t)smem;
    *ret = out;
    return 0;
}

void manifest_specialize(const struct manifest *manifest, const struct problem *problem,
                         const struct shape_case *shape, struct strbuf *out)
{
    for (size_t i = 0; i < problem->param_count; i++) {
        if (manifest->specialized[i]) {
            strbuf_addf(out, "#define KCAST_%s %lld\n", problem->param[i].name,
                        (long long)shape->i[i]);
        }
    }
}
