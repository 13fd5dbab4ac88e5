// Mutants and honest variants of C problems: every mutant changes the result, and no honest variant
// does.
#include "tests/client/problem/problem_code.h"

struct sample {
    const char *json, *baseline;
    size_t applicable; // mutants
};

static const struct sample samples[] = {
    {"{\"name\":\"gemm\",\"title\":\"t\",\"license\":\"MIT\",\"language\":\"c\",\"entry\":\"gemm\","
     "\"params\":[{\"name\":\"M\",\"type\":\"int\"},{\"name\":\"N\",\"type\":\"int\"},{\"name\":"
     "\"K\",\"type\":\"int\"}],"
     "\"tensors\":[{\"name\":\"A\",\"direction\":\"in\",\"dtype\":\"f32\",\"shape\":[\"M\",\"K\"],"
     "\"values\":{\"distribution\":\"normal\",\"mean\":0,\"stddev\":1}},"
     "{\"name\":\"B\",\"direction\":\"in\",\"dtype\":\"f32\",\"shape\":[\"K\",\"N\"],\"values\":{"
     "\"distribution\":\"normal\",\"mean\":0,\"stddev\":1}},"
     "{\"name\":\"C\",\"direction\":\"out\",\"dtype\":\"f32\",\"shape\":[\"M\",\"N\"],"
     "\"tolerance\":16}],"
     "\"cases\":{\"check\":[{\"M\":5,\"N\":37,\"K\":9}],\"bench\":[{\"params\":{\"M\":32,\"N\":32,"
     "\"K\":32},\"weight\":1}],"
     "\"hidden\":{\"M\":{\"min\":1,\"max\":40},\"N\":{\"min\":1,\"max\":40},\"K\":{\"min\":1,"
     "\"max\":40}}},"
     "\"cache\":\"warm\",\"work\":{\"flops\":\"2*M*N*K\",\"bytes\":\"4*(M*K+K*N+M*N)\"}}",
     // These macros and names would collide with a careless wrapper.
     "#include <stdlib.h>\n#include <string.h>\n#define N columns\n#define i inner\nstatic int "
     "kept(int x) { return x; }\n"
     "void gemm(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)\n{\n"
     "    for (int64_t r = 0; r < M; r++)\n        for (int64_t c = 0; c < N; c++) {\n            "
     "float s = 0;\n"
     "            for (int64_t i = 0; i < K; i++)\n                s += A[r * K + i] * B[i * N + "
     "c];\n"
     "            C[r * N + c] = s * (float)kept(1);\n        }\n}\n",
     MUTANT_COUNT - 1},
    {"{\"name\":\"soft\",\"title\":\"t\",\"license\":\"MIT\",\"language\":\"c\",\"entry\":\"soft\","
     "\"params\":[{\"name\":\"R\",\"type\":\"int\"},{\"name\":\"N\",\"type\":\"int\"},{\"name\":"
     "\"scale\",\"type\":\"f64\"}],"
     "\"tensors\":[{\"name\":\"x\",\"direction\":\"in\",\"dtype\":\"f64\",\"shape\":[\"R\",\"max(N,"
     " 2) - min(1, R - R)\"],\"values\":{\"distribution\":\"uniform\",\"low\":-3,\"high\":3}},"
     "{\"name\":\"y\",\"direction\":\"out\",\"dtype\":\"f64\",\"shape\":[\"R\",\"ceildiv(2*N, "
     "2)\"],\"tolerance\":64}],"
     "\"cases\":{\"check\":[{\"R\":4,\"N\":35,\"scale\":0.5}],\"bench\":[{\"params\":{\"R\":8,"
     "\"N\":64,\"scale\":0.5},\"weight\":1}],"
     "\"hidden\":{\"R\":{\"min\":2,\"max\":20},\"N\":{\"min\":2,\"max\":50}}},"
     "\"cache\":\"warm\",\"work\":{\"flops\":\"3*R*N\",\"bytes\":\"16*R*N\"}}",
     "#include <math.h>\nvoid soft(const double *x, double *y, int64_t R, int64_t N, double "
     "scale)\n{\n"
     "    for (int64_t r = 0; r < R; r++) {\n        double top = -INFINITY, sum = 0;\n"
     "        for (int64_t c = 0; c < N; c++)\n            top = fmax(top, scale * x[r * N + c]);\n"
     "        for (int64_t c = 0; c < N; c++)\n            sum += y[r * N + c] = exp(scale * x[r * "
     "N + c] - top);\n"
     "        for (int64_t c = 0; c < N; c++)\n            y[r * N + c] /= sum;\n    }\n}\n",
     MUTANT_COUNT},
    {"{\"name\":\"count\",\"title\":\"t\",\"license\":\"MIT\",\"language\":\"c\",\"entry\":"
     "\"count\","
     "\"params\":[{\"name\":\"N\",\"type\":\"int\"}],"
     "\"tensors\":[{\"name\":\"key\",\"direction\":\"in\",\"dtype\":\"u8\",\"shape\":[\"N\"],"
     "\"values\":{\"distribution\":\"zipf\",\"count\":256,\"exponent\":1.3}},"
     "{\"name\":\"n\",\"direction\":\"out\",\"dtype\":\"i32\",\"shape\":[\"256\"],\"tolerance\":0}]"
     ","
     "\"cases\":{\"check\":[{\"N\":1000}],\"bench\":[{\"params\":{\"N\":4096},\"weight\":1}]},"
     "\"cache\":\"warm\",\"work\":{\"flops\":\"0\",\"bytes\":\"N + 1024\"}}",
     "#include <string.h>\nvoid count(const uint8_t *key, int32_t *n, int64_t N)\n{\n    memset(n, "
     "0, 256 * sizeof *n);\n"
     "    for (int64_t i = 0; i < N; i++)\n        n[key[i]]++;\n}\n",
     // Not applicable: the last column (2), the remainder (1) and what rounds (4).
     MUTANT_COUNT - 7},
    {"{\"name\":\"stride\",\"title\":\"t\",\"license\":\"MIT\",\"language\":\"c\",\"entry\":"
     "\"stride\","
     "\"params\":[{\"name\":\"N\",\"type\":\"int\"},{\"name\":\"a\",\"type\":\"f64\"}],"
     "\"tensors\":[{\"name\":\"y\",\"direction\":\"inout\",\"dtype\":\"f32\",\"shape\":[\"N\"],"
     "\"tolerance\":4,\"values\":{\"distribution\":\"normal\",\"mean\":0,\"stddev\":1}},"
     "{\"name\":\"m\",\"direction\":\"inout\",\"dtype\":\"f32\",\"shape\":[\"3\",\"N\"],"
     "\"tolerance\":4,\"values\":{\"distribution\":\"normal\",\"mean\":0,\"stddev\":1}}],"
     "\"cases\":{\"check\":[{\"N\":333,\"a\":1.5}],\"bench\":[{\"params\":{\"N\":1000,\"a\":1.5},"
     "\"weight\":1}],\"hidden\":{\"N\":{\"min\":1,\"max\":90}}},"
     "\"cache\":\"warm\",\"work\":{\"flops\":\"2*N\",\"bytes\":\"12*N\"}}",
     "void stride(float *y, float *m, int64_t N, double a)\n{\n    for (int64_t i = 0; i < N; "
     "i++)\n        y[i] += (float)a * (m[i] + 1);\n"
     "    for (int64_t i = 0; i < 3 * N; i++)\n        m[i] = (float)a - m[i];\n}\n",
     MUTANT_COUNT - 3}, // there is no tensor that is only an input, and no double
};

// Whether an output differs by more than rounding (1e-5 for f32, 1e-13 for f64), or whether an
// input or a guard zone differs at all.
static bool differs(const struct problem *problem, const struct buffers *a, const struct buffers *b)
{
    for (size_t t = 0; t < problem->tensor_count; t++) {
        const struct tensor *tensor = &problem->tensor[t];
        if (memcmp(a->data[t] + a->size[t], b->data[t] + b->size[t], GUARD) != 0) {
            return true;
        }
        if (tensor->direction == DIRECTION_IN && memcmp(a->data[t], b->data[t], a->size[t]) != 0) {
            return true;
        }
        double bound = tensor->dtype == DTYPE_F32 ? 1e-5 : tensor->dtype == DTYPE_F64 ? 1e-13 : 0;
        for (size_t i = 0; i < a->size[t] / dtype_size(tensor->dtype); i++) {
            double x = element(tensor->dtype, a->data[t], i),
                   y = element(tensor->dtype, b->data[t], i);
            if (!(fabs(x - y) <= bound * fmax(1, fabs(x)))) // NaN differs
            {
                return true;
            }
        }
    }
    return false;
}

// Runs both on two contents of a case and on its other shapes. Returns whether they ever differ.
static bool ever_differs(const struct problem *problem, entry_function *honest,
                         entry_function *other)
{
    bool found = false;
    const struct shape_case *shape[] = {&problem->check[0], &problem->check[0], &problem->bench[0]};
    for (size_t i = 0; i < ARRAY_LEN(shape); i++) {
        struct buffers right = {.size = {0}}, maybe = {.size = {0}};
        fill(problem, shape[i], i + 1, &right);
        fill(problem, shape[i], i + 1, &maybe);
        call(honest, problem, shape[i], &right);
        call(other, problem, shape[i], &maybe);
        found |= differs(problem, &right, &maybe);
        drop(&right);
        drop(&maybe);
    }
    return found;
}

static void every_mutant_compiles_and_spoils_the_result(void **state)
{
    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(samples); s++) {
        struct problem *problem = parse(samples[s].json);
        void *honest_handle, *handle;
        entry_function *honest = load(problem, false, samples[s].baseline, &honest_handle);
        size_t applicable = 0;
        for (size_t i = 0; i < MUTANT_COUNT; i++) {
            struct strbuf source = STRBUF_INIT, reason = STRBUF_INIT;
            bool applies = mutant_applicable((enum mutant)i, problem, &reason);
            assert_true(applies == (reason.len == 0));
            if (applies) {
                applicable++;
                mutant_source((enum mutant)i, problem, samples[s].baseline, &source);
                if (!ever_differs(problem, honest,
                                  load(problem, false, strbuf_text(&source), &handle))) {
                    fail_msg("%s of %s is right", mutant_name((enum mutant)i), problem->name);
                }
                dlclose(handle);
            }
            strbuf_release(&source);
            strbuf_release(&reason);
        }
        if (applicable != samples[s].applicable) {
            fail_msg("%s: %zu of %zu mutants apply", problem->name, applicable,
                     samples[s].applicable);
        }
        dlclose(honest_handle);
        problem_free(problem);
    }
}

static void every_honest_variant_compiles_and_is_right(void **state)
{
    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(samples); s++) {
        struct problem *problem = parse(samples[s].json);
        void *honest_handle, *handle;
        entry_function *honest = load(problem, false, samples[s].baseline, &honest_handle);
        for (size_t i = 0; i < HONEST_COUNT; i++) {
            struct strbuf source = STRBUF_INIT;
            honest_source((enum honest)i, samples[s].baseline, &source);
            assert_false(
                ever_differs(problem, honest, load(problem, false, strbuf_text(&source), &handle)));
            dlclose(handle);
            strbuf_release(&source);
        }
        dlclose(honest_handle);
        problem_free(problem);
    }
}

static void remembering_mutants_are_right_the_first_time(void **state)
{
    (void)state;
    struct problem *problem = parse(samples[0].json);
    void *honest_handle;
    entry_function *honest = load(problem, false, samples[0].baseline, &honest_handle);
    static const enum mutant remembering[] = {MUTANT_PREVIOUS, MUTANT_FIRST};
    for (size_t i = 0; i < ARRAY_LEN(remembering); i++) {
        struct strbuf source = STRBUF_INIT;
        mutant_source(remembering[i], problem, samples[0].baseline, &source);
        void *handle;
        entry_function *entry = load(problem, false, strbuf_text(&source), &handle);
        for (uint64_t seed = 1; seed <= 3; seed++) {
            struct buffers right = {.size = {0}}, maybe = {.size = {0}};
            fill(problem, &problem->check[0], seed, &right);
            fill(problem, &problem->check[0], seed, &maybe);
            call(honest, problem, &problem->check[0], &right);
            call(entry, problem, &problem->check[0], &maybe);
            assert_true(differs(problem, &right, &maybe) == (seed > 1));
            drop(&right);
            drop(&maybe);
        }
        dlclose(handle);
        strbuf_release(&source);
    }
    dlclose(honest_handle);
    problem_free(problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mutant_compiles_and_spoils_the_result),
        cmocka_unit_test(every_honest_variant_compiles_and_is_right),
        cmocka_unit_test(remembering_mutants_are_right_the_first_time),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
