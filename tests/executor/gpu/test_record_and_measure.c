// From a candidate in Python to its verdict: recorded in the recorder's jail with a stand-in for
// PyTorch, and what comes out of it measured on the fake GPU. Skipped without a compiler.
#include "tests/executor/gpu/gpu_trial_fixture.h"
#include "tests/executor/gpu/record/recorder_fixture.h"

struct both {
    void *recorder, *trial; // as their fixtures have made them
};

static int both_set_up(void **state)
{
    struct both *both = xcalloc(1, sizeof(*both));

    *state = both;
    return recorder_set_up(&both->recorder) == 0 ? trial_set_up(&both->trial) : -1;
}

static int both_tear_down(void **state)
{
    struct both *both = *state;

    (void)recorder_tear_down(&both->recorder);
    (void)trial_tear_down(&both->trial);
    free(both);
    return 0;
}

static void measured(const struct both *both, const char *source, enum verdict verdict,
                     const char *words)
{
    struct recorder_fixture *f = both->recorder;

    recorder_becomes(f, source, VERDICT_NONE, "");
    trial_becomes(both->trial, bytes_copy(f->outcome.object.data, f->outcome.object.len), verdict,
                  words, false);
}

static void what_computes_it_is_right_and_as_fast_as_it_is(void **state)
{
    const struct both *both = *state;

    trial_must_open(both->trial, "noise=0.2");
    measured(both, SCALE LAUNCH, VERDICT_EQUIVALENT, "");
    measured(both,
             SCALE "    z = torch.empty(x.numel() + 3)\n"
                   "    torch.launch('fk_scale_fast30', x, z[3:], x.numel(), a)\n"
                   "    return z[3:]\n",
             VERDICT_FASTER, "");
}

// Memory from before that a candidate works in is there each time;
// what was the answer when it was recorded is the answer to nothing else.
static void what_it_has_kept_is_there_but_answers_nothing(void **state)
{
    const struct both *both = *state;

    trial_must_open(both->trial, "noise=0.2");
    measured(both,
             HEAD "kept = {}\n"
                  "def p(x, y, n, a):\n"
                  "    if n not in kept: kept[n] = torch.tensor([1.0] * n)\n"
                  "    z = kept[n]\n    torch.launch('fk_scale', x, y, n, a)\n"
                  "    z.copy_(x)\n    torch.launch('fk_scale', z, y, n, a)\n",
             VERDICT_SLOWER, "");
    measured(both,
             HEAD "kept = {}\n"
                  "def p(x, y, n, a):\n"
                  "    if n not in kept:\n        kept[n] = torch.empty(n)\n"
                  "        torch.launch('fk_scale', x, kept[n], n, a)\n"
                  "    y.copy_(kept[n])\n",
             VERDICT_WRONG, "elements are outside");
}

// The kernel writes nothing unless a variable of its image is 0, and counts it up.
static void variables_of_its_images_are_put_back(void **state)
{
    const struct both *both = *state;
    static const char *const image[] = {"", "torch.fat_binary"};

    trial_must_open(both->trial, "noise=0.2");
    for (size_t i = 0; i < ARRAY_LEN(image); i++) {
        char *source =
            xasprintf(SCALE "    torch.launch('fk_scale_state', x, y, x.numel(), a,\n"
                            "        image=%s(torch.cubin('fk_scale_state', 'counter')))\n",
                      image[i]);

        measured(both, source, VERDICT_EQUIVALENT, "");
        free(source);
    }
}

// Two halves on two streams take as long as one of them, with what events take; one after the other
// they would be slower.
#define HALVES                                                                                     \
    HEAD "other, kept = torch.cuda.Stream(), {}\n"                                                 \
         "def halves(x, y, n, a):\n    here = torch.cuda.current_stream()\n"                       \
         "    other.wait_stream(here)\n"                                                           \
         "    torch.launch('fk_scale_fast30', x[:n // 2], y[:n // 2], n // 2, a)\n"                \
         "    with torch.cuda.stream(other):\n"                                                    \
         "        torch.launch('fk_scale_fast30', x[n // 2:], y[n // 2:], n // 2, a)\n"            \
         "    here.wait_stream(other)\n"                                                           \
         "def p(x, y, n, a):\n"

static void what_overlaps_is_measured_so(void **state)
{
    const struct both *both = *state;

    trial_must_open(both->trial, "noise=0.2");
    measured(both, HALVES "    halves(x, y, n, a)\n", VERDICT_FASTER, "");
    measured(both,
             HALVES "    if n not in kept:\n        kept[n] = torch.cuda.CUDAGraph()\n"
                    "        with torch.cuda.graph(kept[n]): halves(x, y, n, a)\n"
                    "    kept[n].replay()\n",
             VERDICT_FASTER, "");
    measured(both, HALVES "    halves(x, y, n, a)\n    halves(x, y, n, a)\n", VERDICT_SLOWER, "");
    // Memory that only the captured graph works in; it is nobody else's.
    measured(both,
             HALVES "    if n not in kept:\n        kept[n] = torch.cuda.CUDAGraph()\n"
                    "        with torch.cuda.graph(kept[n]):\n            t = torch.empty(n)\n"
                    "            t.copy_(x)\n            halves(t, y, n, a)\n        del t\n"
                    "        kept[n, 0] = torch.tensor([1.0] * n)\n"
                    "    kept[n].replay()\n    torch.launch('fk_scale', kept[n, 0], y, n, a)\n"
                    "    kept[n].replay()\n",
             VERDICT_SLOWER, "");
}

// A reference in Python, recorded like a candidate, holds every candidate against what it computes
// of the inputs that this one has got.
static void a_reference_in_python_judges(void **state)
{
    const struct both *both = *state;
    struct recorder_fixture *f = both->recorder;
    struct trial *trial = both->trial;
    static const char *const source[] = {
        "def reference(x, a):\n    y = x * a\n    return y, y.abs()\n",
        "kept = {}\ndef reference(**known):\n    x, n = known['x'], known['n']\n"
        "    if n not in kept: kept[n] = torch.tensor([known['a']] * n)\n"
        "    y = x * known['a']\n    return [(y, kept[n])]\n",
    };

    trial_must_open(trial, "noise=0.2");
    for (size_t i = 0; i < ARRAY_LEN(source); i++) {
        char *whole = xasprintf("%s%s", HEAD, source[i]);

        f->plan.role = COMPILE_REFERENCE;
        recorder_becomes(f, whole, VERDICT_NONE, "");
        free(whole);
        trial_replace(&trial->plan.reference,
                      bytes_copy(f->outcome.object.data, f->outcome.object.len));
        f->plan.role = COMPILE_CANDIDATE;
        trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
        trial_becomes(trial, trial_kernel("fk_scale_wrong"), VERDICT_WRONG,
                      "1 of 300 elements are outside", false);
        measured(both, SCALE LAUNCH, VERDICT_EQUIVALENT, "");
        measured(both, SCALE "    torch.launch('fk_scale_zero', x, y, x.numel(), a)\n",
                 VERDICT_WRONG, "elements are outside");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_computes_it_is_right_and_as_fast_as_it_is, both_set_up,
                                        both_tear_down),
        cmocka_unit_test_setup_teardown(what_it_has_kept_is_there_but_answers_nothing, both_set_up,
                                        both_tear_down),
        cmocka_unit_test_setup_teardown(variables_of_its_images_are_put_back, both_set_up,
                                        both_tear_down),
        cmocka_unit_test_setup_teardown(what_overlaps_is_measured_so, both_set_up, both_tear_down),
        cmocka_unit_test_setup_teardown(a_reference_in_python_judges, both_set_up, both_tear_down),
    };

    return cmocka_run_group_tests(tests, trial_find_compiler, NULL);
}
