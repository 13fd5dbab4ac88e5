#include "common/strbuf.h"
#include "problem/manifest.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <string.h>

// A problem with the tensors x (in, 2 axes), y (out) and z (inout), the int params rows and cols,
// and the f64 param eps.
static const char problem_text[] =
    "{\"name\": \"p\", \"title\": \"t\", \"license\": \"MIT\", \"language\": \"cuda\",\n"
    "\"params\": [{\"name\": \"rows\", \"type\": \"int\"}, {\"name\": \"eps\", \"type\": "
    "\"f64\"},\n"
    "             {\"name\": \"cols\", \"type\": \"int\"}],\n"
    "\"tensors\": [\n"
    "  {\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"bf16\", \"shape\": [\"rows\", "
    "\"cols\"],\n"
    "   \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},\n"
    "  {\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"rows\"], "
    "\"tolerance\": 4},\n"
    "  {\"name\": \"z\", \"direction\": \"inout\", \"dtype\": \"f32\", \"shape\": [\"rows\"], "
    "\"tolerance\": 4,\n"
    "   \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}}],\n"
    "\"cases\": {\"check\": [{\"rows\": 7, \"cols\": 100, \"eps\": 0.5}],\n"
    "  \"bench\": [{\"params\": {\"rows\": 64, \"cols\": 4096, \"eps\": 0.5}, \"weight\": 1}]},\n"
    "\"cache\": \"cold\", \"work\": {\"flops\": \"rows*cols\", \"bytes\": \"2*rows*cols\", "
    "\"unit\": \"bf16\"}}\n";

static struct problem *problem;

static int set_up(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    if (problem_parse(&problem, problem_text, strlen(problem_text), "problem.json", &err) != 0) {
        fail_msg("%s", err.text);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    problem_free(problem);
    return 0;
}

static struct manifest *parsed_as(const char *source, enum manifest_role role)
{
    struct manifest *manifest = NULL;
    struct err err = ERR_INIT;

    if (manifest_parse(&manifest, source, strlen(source), "k.cu", problem, role, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return manifest;
}

static struct manifest *parsed(const char *source)
{
    return parsed_as(source, MANIFEST_CANDIDATE);
}

static void assert_refused_as(const char *source, enum manifest_role role, const char *text)
{
    struct manifest *manifest = NULL;
    struct err err = ERR_INIT;
    int rc = manifest_parse(&manifest, source, strlen(source), "k.cu", problem, role, &err);

    assert_null(manifest);
    if (rc != ERR_INVALID || strncmp(err.text, text, strlen(text)) != 0) {
        fail_msg("%d, \"%s\" instead of \"%s\"", rc, err.text, text);
    }
    assert_int_equal(manifest_parse(&manifest, source, strlen(source), "k.cu", problem, role, NULL),
                     ERR_INVALID);
}

static void assert_refused(const char *source, const char *text)
{
    assert_refused_as(source, MANIFEST_CANDIDATE, text);
}

static struct manifest_shape shape_of(const struct manifest *manifest, size_t launch,
                                      const struct shape_case *shape)
{
    struct manifest_shape out = {0};
    struct err err = ERR_INIT;

    if (manifest_launch_shape(manifest, launch, shape, problem, &out, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return out;
}

static void a_launch_is_read(void **state)
{
    struct manifest *m = parsed(
        "#define TILE 16\n"
        "//@ scratch part bytes=4*rows*ceildiv(cols, TILE)\n"
        "//@ scratch count bytes=4 init=zero\r\n"
        "  //@ tensormap xmap tensor=x box=(TILE, 64) swizzle=128\n"
        "//@ tune OTHER in (1, 2)\n"
        "//@ launch ns::sum<TILE, 4> grid=(ceildiv(rows, TILE), 2) block=(32, TILE) smem=4*cols "
        "args=(x, part, count, xmap, rows, eps, rows*cols, TILE) pdl\n"
        "//@ launch last grid=rows block=256 cluster=(2) cooperative if=(rows > 8 && cols != 3) "
        "args=()\n"
        "int x;\n");

    (void)state;
    assert_int_equal(m->launch_count, 2);
    assert_string_equal(m->launch[0].kernel, "ns::sum<TILE, 4>");
    assert_true(m->launch[0].pdl && !m->launch[0].cooperative && m->launch[1].cooperative);
    assert_int_equal(m->launch[1].line, 7);
    assert_int_equal(m->launch[0].arg_count, 8);
    static const enum manifest_arg_kind kinds[] = {ARG_TENSOR,    ARG_SCRATCH, ARG_SCRATCH,
                                                   ARG_TENSORMAP, ARG_INTEGER, ARG_SCALAR,
                                                   ARG_INTEGER,   ARG_INTEGER};
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(m->launch[0].arg[i].kind, kinds[i]);
    }
    assert_int_equal(m->launch[0].arg[2].index, 1);
    assert_int_equal(m->launch[0].arg[5].index, 1);
    int64_t value = 0;
    assert_int_equal(
        manifest_eval(m, m->launch[0].arg[6].expr, &problem->bench[0], problem, &value, NULL), 0);
    assert_int_equal(value, 64 * 4096);
    assert_int_equal(
        manifest_eval(m, m->scratch[0].bytes, &problem->check[0], problem, &value, NULL), 0);
    assert_int_equal(value, 4 * 7 * 7);
    assert_true(!m->scratch[0].zero && m->scratch[1].zero);
    assert_int_equal(m->tensormap[0].tensor, 0);
    assert_int_equal(m->tensormap[0].swizzle, 128);

    struct manifest_shape shape = shape_of(m, 0, &problem->check[0]);
    assert_int_equal(shape.grid[0], 1);
    assert_int_equal(shape.grid[1], 2);
    assert_int_equal(shape.grid[2], 1);
    assert_int_equal(shape.block[1], 16);
    assert_int_equal(shape.cluster[0], 0);
    assert_int_equal(shape.smem, 400);
    assert_true(shape_of(m, 1, &problem->check[0]).skipped);
    shape = shape_of(m, 1, &problem->bench[0]);
    assert_true(!shape.skipped && shape.grid[0] == 64 && shape.cluster[0] == 2 &&
                shape.cluster[2] == 1);
    manifest_free(m);
}

static void a_reference_has_expected_values_and_scales(void **state)
{
    struct manifest *m =
        parsed_as("//@ launch r grid=(rows) block=(1) args=(x, y, y_scale, z, z_out, z_scale)\n",
                  MANIFEST_REFERENCE);
    static const enum manifest_arg_kind kinds[] = {ARG_TENSOR, ARG_EXPECTED, ARG_SCALE,
                                                   ARG_TENSOR, ARG_EXPECTED, ARG_SCALE};

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(m->launch[0].arg[i].kind, kinds[i]);
        assert_int_equal(m->launch[0].arg[i].index, i == 0 ? 0 : i < 3 ? 1 : 2);
    }
    manifest_free(m);
    assert_refused_as("\n//@ launch r grid=(rows) block=(1) args=(x, y, y_scale, z, z_scale)\n",
                      MANIFEST_REFERENCE,
                      "k.cu:2:1: no launch gets z_out, which a reference has to compute");
    assert_refused_as("//@ launch r grid=(rows) block=(1) args=(x, y, z, z_out, z_scale)\n",
                      MANIFEST_REFERENCE, "k.cu:1:1: no launch gets y_scale");
    assert_refused_as("//@ specialize rows\n", MANIFEST_REFERENCE,
                      "k.cu:1:15: a reference may not specialize");
    assert_refused("//@ launch k grid=(1) block=(1) args=(y_scale)\n", "k.cu:1:39: ");
}

static void params_are_specialized(void **state)
{
    struct manifest *m =
        parsed("//@ specialize cols, rows\n//@ launch k grid=(1) block=(1) args=(x)\n");

    (void)state;
    assert_true(m->specializes && m->specialized[0] && !m->specialized[1] && m->specialized[2]);
    struct strbuf out = STRBUF_INIT;
    manifest_specialize(m, problem, &problem->bench[0], &out);
    assert_string_equal(strbuf_text(&out), "#define KCAST_rows 64\n#define KCAST_cols 4096\n");
    strbuf_release(&out);
    manifest_free(m);
    assert_refused("//@ specialize eps\n", "k.cu:1:16: eps is no int param of the problem");
    assert_refused("//@ specialize\n", "k.cu:1:15: specialize needs a param");
    assert_refused("//@ specialize rows,\n//@ specialize ,\n",
                   "k.cu:2:16: a param's name is missing here");
}

// The first definition counts, because those of a template's point stand in front of the text.
static void macros_are_integers_on_one_line(void **state)
{
    struct manifest *m =
        parsed("#define A 3 // three\n# define B (-2)\n#define A 4\n#define C A\n#define D 0x10\n"
               "#define E(x) 1\n#define F 1 + 1\n#define G\t7 /* seven */\n"
               "//@ launch k grid=(A) block=(A + G, 1) args=(A*B, G)\n");

    (void)state;
    assert_int_equal(m->constant_count, 3);
    assert_int_equal(shape_of(m, 0, &problem->check[0]).block[0], 10);
    assert_int_equal(m->constant[1], -2);
    manifest_free(m);
    m = parsed("//@ scratch s bytes=4 * ceildiv(rows, 2)  init=zero\n"
               "//@ launch k grid=rows -1 block= 2* 3 smem = (rows) + 1 if=rows == 7 && 1 args = "
               "(rows / 2, x)  pdl\n");
    assert_int_equal(shape_of(m, 0, &problem->check[0]).grid[0], 6);
    assert_int_equal(shape_of(m, 0, &problem->check[0]).block[0], 6);
    assert_int_equal(shape_of(m, 0, &problem->check[0]).smem, 8);
    assert_true(m->launch[0].pdl && m->scratch[0].zero && m->launch[0].arg_count == 2);
    manifest_free(m);
    assert_refused("#define C D\n//@ launch k grid=(C) block=(1) args=()\n", "k.cu:2:20: ");
    assert_refused("#define rows 4\n//@ launch k grid=(cols*rows) block=(1) args=()\n",
                   "k.cu:2:25: rows is a param of the problem and a macro; rename the macro");
    manifest_free(parsed("#define rows 4\n//@ launch k grid=(cols) block=(1) args=()\n"));
}

static void lines_are_refused_at_their_place(void **state)
{
    static const char *const bad[][2] = {
        {"int x;\n", "k.cu:1:1: there is no launch line; write //@ launch"},
        {"//@ lunch k\n",
         "k.cu:1:5: //@ is followed by launch, scratch, specialize, tensormap or tune"},
        {"//@\n", "k.cu:1:4: "},
        {"//@ launch\n", "k.cu:1:11: a kernel's name is missing here"},
        {"//@ launch k<1 grid=(1)\n", "k.cu:1:20: this may not stand in a kernel's name"},
        {"//@ launch k<1, 2\n", "k.cu:1:12: the < of this kernel's name is not closed"},
        {"//@ launch k<\"a\">\n", "k.cu:1:14: this may not stand"},
        {"//@ launch k grid=(1) block=(1)\n",
         "k.cu:1:1: a launch needs grid=(…), block=(…) and args=(…)"},
        {"//@ launch k size=(1)\n",
         "k.cu:1:14: launch takes grid, block, cluster, smem, if, args, cooperative and pdl"},
        {"//@ launch k grid (1)\n", "k.cu:1:19: an = is missing here"},
        {"//@ launch k grid=\n", "k.cu:1:19: a value is missing here"},
        {"//@ launch k grid=(1\n", "k.cu:1:19: this ( is not closed"},
        {"//@ launch k grid=1)\n", "k.cu:1:20: this ) closes nothing"},
        {"//@ launch k grid=()\n", "k.cu:1:19: one to three extents are needed here"},
        {"//@ launch k grid=(1,2,3,4)\n", "k.cu:1:19: one to three extents are needed here"},
        {"//@ launch k grid=(1,,2)\n", "k.cu:1:22: an item is missing here"},
        {"//@ launch k grid=(1)+(2)\n", "k.cu:1:21: put the whole value into parentheses"},
        {"//@ launch k grid=(1) grid=(2)\n", "k.cu:1:28: this is given twice"},
        {"//@ launch k smem=1 smem=2\n", "k.cu:1:21: this is given twice"},
        {"//@ launch k args=() args=(x)\n", "k.cu:1:22: args is given twice"},
        {"//@ launch k grid=(1) fast block=(2)\n", "k.cu:1:23: launch takes grid,"},
        {"//@ launch k args=x\n", "k.cu:1:19: args needs a list in parentheses"},
        {"//@ launch k args=(x, w)\n", "k.cu:1:23: "},
        {"//@ launch k args=(x > 1)\n", "k.cu:1:20: "},
        {"//@ launch k grid=(eps)\n", "k.cu:1:20: "},
        {"//@ scratch x bytes=4\n", "k.cu:1:13: x is the name of something else already"},
        {"//@ scratch s bytes=4\n//@ scratch s bytes=4\n",
         "k.cu:2:13: s is the name of something else already"},
        {"//@ scratch bytes=4\n", "k.cu:1:18: scratch takes bytes=… once"},
        {"//@ scratch s\n", "k.cu:1:13: scratch needs bytes=…"},
        {"//@ scratch s bytes=4 init=one\n",
         "k.cu:1:23: scratch takes bytes=… once and init=zero or init=poison"},
        {"//@ tensormap t tensor=w box=(1)\n", "k.cu:1:24: w is no tensor of the problem"},
        {"//@ tensormap t tensor=x box=(1)\n",
         "k.cu:1:30: box needs one extent for each axis of the tensor, at most 5"},
        {"//@ tensormap t tensor=x\n", "k.cu:1:15: tensormap needs tensor=… and box=(…)"},
        {"//@ tensormap t tensor=x box=(1,1) swizzle=16\n",
         "k.cu:1:36: tensormap takes tensor=…, box=(…) and"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_refused(bad[i][0], bad[i][1]);
    }
}

static void a_nul_byte_is_refused(void **state)
{
    (void)state;
    struct manifest *manifest = NULL;
    assert_int_equal(
        manifest_parse(&manifest, "a\0b", 3, "k.cu", problem, MANIFEST_CANDIDATE, NULL),
        ERR_INVALID);
    assert_int_equal(manifest_parse(&manifest, "", 0, "k.cu", problem, MANIFEST_CANDIDATE, NULL),
                     ERR_INVALID);
}

static void counts_have_limits(void **state)
{
    (void)state;
    struct strbuf source = STRBUF_INIT;
    for (int i = 0; i < 32; i++) {
        strbuf_adds(&source, "//@ launch k grid=1 block=1 args=()\n");
    }
    manifest_free(parsed(strbuf_text(&source)));
    strbuf_adds(&source, "//@ launch k grid=1 block=1 args=()\n");
    assert_refused(strbuf_text(&source), "k.cu:33:11: more than 32 launches");
    strbuf_release(&source);
    strbuf_adds(&source, "//@ launch k grid=1 block=1 args=(1");
    for (int i = 1; i < 65; i++) {
        strbuf_adds(&source, ", 1");
    }
    strbuf_adds(&source, ")\n");
    assert_refused(strbuf_text(&source), "k.cu:1:228: too many items");
    strbuf_release(&source);
    for (int i = 0; i < 17; i++) {
        strbuf_addf(&source, "//@ scratch s%d bytes=4\n", i);
    }
    assert_refused(strbuf_text(&source), "k.cu:17:13: more than 16 scratch areas");
    strbuf_release(&source);
    for (int i = 0; i < 17; i++) {
        strbuf_addf(&source, "//@ tensormap s%d tensor=y box=1\n", i);
    }
    assert_refused(strbuf_text(&source), "k.cu:17:15: more than 16 tensor maps");
    strbuf_release(&source);
}

static void shapes_stay_within_what_a_device_takes(void **state)
{
    static const char *const bad[][2] = {
        {"grid=(0) block=1", "k: grid x is 0, not between 1 and 2147483647"},
        {"grid=(1, 65536) block=1", "k: grid y is 65536, not between 1 and 65535"},
        {"grid=(1) block=(1, 1, 65)", "k: block z is 65, not between 1 and 64"},
        {"grid=(1) block=(33, 32)", "k: a block has at most 1024 threads"},
        {"grid=(4, 4, 4) block=1 cluster=(4, 4, 2)", "k: a cluster has at most 16 blocks"},
        {"grid=(3) block=1 cluster=2",
         "k: a cluster has at most 16 blocks, and the grid is a multiple of it"},
        {"grid=(1) block=1 smem=1048577", "k: smem is 1048577, not between 0 and 1048576"},
        {"grid=(1) block=1 smem=0-1", "k: smem is -1, not between 0 and 1048576"},
        {"grid=(rows / (cols - 100)) block=1", "k, grid: "},
        {"grid=1 block=1 if=(rows / (cols - 100))", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct strbuf source = STRBUF_INIT;

        strbuf_addf(&source, "//@ launch k %s args=()\n", bad[i][0]);
        struct manifest *m = parsed(strbuf_text(&source));
        struct manifest_shape shape;
        struct err err = ERR_INIT;
        assert_int_equal(manifest_launch_shape(m, 0, &problem->check[0], problem, &shape, &err),
                         ERR_INVALID);
        if (strncmp(err.text, bad[i][1], strlen(bad[i][1])) != 0) {
            fail_msg("\"%s\" instead of \"%s\"", err.text, bad[i][1]);
        }
        manifest_free(m);
        strbuf_release(&source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launch_is_read),
        cmocka_unit_test(a_reference_has_expected_values_and_scales),
        cmocka_unit_test(params_are_specialized),
        cmocka_unit_test(macros_are_integers_on_one_line),
        cmocka_unit_test(lines_are_refused_at_their_place),
        cmocka_unit_test(a_nul_byte_is_refused),
        cmocka_unit_test(counts_have_limits),
        cmocka_unit_test(shapes_stay_within_what_a_device_takes),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
