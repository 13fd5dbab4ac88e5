// Sources that exhaust the compiler: each is refused with words that say what it has exhausted and
// how much of it is allowed, whatever the compiler itself says. A host that stands still exhausts
// nothing.
#include "tests/executor/fixture.h"
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW "void window(const float *x, float *y, int64_t N) { y[0] = x[0]; }\n"
// 16, 65536 and 2^32 times the argument, and 65536 times what X is each time.
#define ENDLESS "__asm__(\".rept 50000\\n.rept 50000\\n.endr\\n.endr\\n\");\n" WINDOW
#define TIMES                                                                                      \
    "#define A(x) x x x x x x x x x x x x x x x x\n"                                               \
    "#define B(x) A(A(A(A(x))))\n"                                                                 \
    "#define C(x) B(B(x))\n"                                                                       \
    "#define X1 X X X X X X X X X X X X X X X X\n"                                                 \
    "#define X2 X1 X1 X1 X1 X1 X1 X1 X1 X1 X1 X1 X1 X1 X1 X1 X1\n"                                 \
    "#define X3 X2 X2 X2 X2 X2 X2 X2 X2 X2 X2 X2 X2 X2 X2 X2 X2\n"                                 \
    "#define X4 X3 X3 X3 X3 X3 X3 X3 X3 X3 X3 X3 X3 X3 X3 X3 X3\n"

static const struct {
    const char *name, *source;
    double seconds;
    uint64_t memory_mib;
    const char *words; // part of the reason
} bomb[] = {
    {"macros", TIMES "C(int a;)\n" WINDOW, 60, 512,
     "compiling it takes more than the 512 MiB of memory allowed"},
    {"_Generic",
     "#define G(x) _Generic(1, int: (x) + (x), default: (x))\n"
     "#define H(x) G(G(G(G(x))))\n#define I(x) H(H(H(H(x))))\n"
     "int many = I(I(1));\n" WINDOW,
     60, 512, "compiling it takes more than the 512 MiB of memory allowed"},
    {"initialisers", "int many[1 << 27] = {[0 ... (1 << 27) - 1] = 7};\n" WINDOW, 60, 256,
     "compiling it takes more than the 256 MiB of memory allowed"},
    {"an initialised array", "char many[1 << 28] = {1};\n" WINDOW, 60, 1024, ""},
    {"repeated instructions", "__asm__(\".rept 2000000000\\nnop\\n.endr\\n\");\n" WINDOW, 60, 512,
     ""},
    {"nested repetitions", ENDLESS, 2, 512,
     "compiling it takes longer than the 2 seconds of processor time allowed"},
    {"an assembler that never ends", "__asm__(\".macro m\\nm\\n.endm\\nm\\n\");\n" WINDOW, 60, 512,
     ""},
    {"space", "__asm__(\".data\\n.fill 8000000000, 1, 1\\n.text\\n\");\n" WINDOW, 60, 512,
     "compiling it writes more than the 32 MiB allowed"},
    {"a file without end", "__asm__(\".incbin \\\"/dev/zero\\\"\\n\");\n" WINDOW, 60, 512, ""},
    {"cases",
     TIMES "#define X case __COUNTER__: n ^= n * 3 + __COUNTER__;\n"
           "int f(int n) { switch (n) { X4 X4 X4 X4 X4 X4 X4 X4 } return n; }\n" WINDOW,
     1, 2048, "compiling it takes "},
    {"parentheses", TIMES "#define X (\nint deep = X4 1;\n" WINDOW, 60, 512, ""},
    {"warnings before an error",
     TIMES "#define W _Pragma(\"GCC warning \\\"again and again and again\\\"\")\n"
           "A(A(A(W)))\nint bad = ;\n" WINDOW,
     60, 512, "expected expression before ';'"},
    {"blank lines", "__asm__(\".print \\\"\\\\n\\\"\\n.abort\\n\");\n" WINDOW, 60, 512, "abort"},
    {"Python", "import torch\n\ndef chain(x, y):\n    y.copy_(x)\n", 60, 512,
     "it is Python, and this problem is for cores, whose candidates are in C"},
    {"a file that includes itself", "#include __FILE__\n" WINDOW, 60, 512, "nested"},
    {"an escape sequence",
     "#error \x1b[2J\xc2\x9b"
     "1m\xe2\x80\xae\n" WINDOW,
     60, 512, "#error ?"},
};

static void each_has_its_words(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(bomb); i++) {
        struct compile_plan plan = fixture_compile_plan(*state, "candidates/faster.c", false);

        bytes_clear(&plan.source);
        plan.source = (struct bytes){.data = (unsigned char *)xstrdup(bomb[i].source),
                                     .len = strlen(bomb[i].source)};
        plan.max_seconds = bomb[i].seconds;
        plan.max_memory = bomb[i].memory_mib << 20;
        struct compile_outcome outcome = fixture_compile(*state, &plan);
        const char *reason = outcome.compiled->reason ? outcome.compiled->reason : "";
        if (outcome.compiled->verdict != VERDICT_COMPILE_ERROR ||
            reason[strspn(reason, " \t\n")] == '\0' || !strstr(reason, bomb[i].words)) {
            fail_msg("%s: %s (%s) instead of \"%s\"\n", bomb[i].name,
                     verdict_name(outcome.compiled->verdict), reason, bomb[i].words);
        }
        message_clear(&compile_outcome_message, &outcome);
    }
}

// Compiles the source without a sandbox, or with one if there is one here.
static int try_compile(const struct fixture *fixture, const char *source, double max_seconds,
                       double wall_seconds, bool sandbox_off, struct compile_outcome *ret,
                       struct err *err)
{
    struct compile_plan plan = fixture_compile_plan(fixture, "candidates/faster.c", false);

    bytes_clear(&plan.source);
    plan.source = bytes_copy(source, strlen(source));
    plan.max_seconds = max_seconds;
    plan.wall_seconds = wall_seconds;
    plan.sandbox_off = sandbox_off;
    return fixture_try_compile(fixture, &plan, ret, err);
}

static void a_compiler_that_only_lasts_is_the_hosts_fault(void **state)
{
    for (int off = 0; off < 2; off++) {
        struct compile_outcome outcome;
        struct err err = ERR_INIT;

        assert_int_equal(try_compile(*state, ENDLESS, 1e6, 0.1, off != 0, &outcome, &err),
                         ERR_TIMED_OUT);
        if (!strstr(err.text, "has not ended after 0.1 seconds") ||
            !strstr(err.text, "this host")) {
            fail_msg("%s", err.text);
        }
    }
}

// A compiler that waits: cc1 opens a pipe that nobody writes to. The processor time that was used
// before decides who is blamed for it.
static void a_compiler_that_waits_for_ever_is_ended(void **state)
{
    char *dir, *source, *path;
    struct compile_outcome outcome;
    struct err err = ERR_INIT;

    assert_int_equal(file_make_temp_dir(&dir, "kcast-test", &err), 0);
    path = xasprintf("%s/pipe.h", dir);
    source = xasprintf("#include \"%s\"\n" WINDOW, path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(try_compile(*state, source, 1e6, 0.1, true, &outcome, &err), ERR_TIMED_OUT);
    err = (struct err)ERR_INIT;
    assert_int_equal(try_compile(*state, source, 1e-9, 0.1, true, &outcome, &err), 0);
    assert_int_equal(outcome.compiled->verdict, VERDICT_COMPILE_ERROR);
    assert_non_null(strstr(outcome.compiled->reason, "processor time"));
    message_clear(&compile_outcome_message, &outcome);
    assert_int_equal(file_remove_tree(dir, &err), 0);
    free(source);
    free(path);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_its_words),
        cmocka_unit_test(a_compiler_that_only_lasts_is_the_hosts_fault),
        cmocka_unit_test(a_compiler_that_waits_for_ever_is_ended),
    };

    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
