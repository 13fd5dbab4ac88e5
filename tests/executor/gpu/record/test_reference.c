// What becomes of references in Python: what they are given, what is recorded of them, and what
// their author is told.
#include "executor/gpu/arena.h"
#include "executor/gpu/cases.h"
#include "tests/executor/gpu/record/recorder_fixture.h"

#define OF "import torch\ndef reference(x, a):\n"

// Records with the reference's role, reads the object and returns its case number `number`: 0 is
// the benchmark's, n = 2000 and a = 2.5, 1 the one to check, n = 300 and a = 2.
static const struct recorded_case *recorded(struct recorder_fixture *f, const char *source,
                                            size_t number)
{
    f->plan.role = COMPILE_REFERENCE;
    recorder_becomes(f, source, VERDICT_NONE, "");
    message_clear(&cuda_object_message, &f->object);
    if (message_read(&cuda_object_message, &f->object, f->outcome.object.data,
                     f->outcome.object.len, &f->err) != 0) {
        fail_msg("%s", f->err.text);
    }
    assert_non_null(f->object.recording);
    assert_int_equal(f->object.recording->cases_count, 2);
    assert_int_equal(recording_unpack_images(f->object.recording, &f->err), 0);
    if (recording_check(f->object.recording, f->problem, MANIFEST_REFERENCE, &f->err) != 0) {
        fail_msg("%s", f->err.text);
    }
    return &f->object.recording->cases[number];
}

static uint64_t parameter(const struct recorded_node *node, size_t at)
{
    uint64_t value = 0;

    assert_true(at + 8 <= node->parameters.len);
    memcpy(&value, node->parameters.data + at, 8);
    return value;
}

// Inputs are widened by what is recorded too, so it is done with those that a case has.
static void inputs_come_in_double_precision_and_results_go_so(void **state)
{
    struct recorder_fixture *f = *state;
    static const char *const kernel[] = {"fk_double", "fk_times", "fk_magnitude"};

    for (size_t number = 0; number < 2; number++) {
        const struct recorded_case *of =
            recorded(f, OF "    y = x * a\n    return y, y.abs()\n", number);
        double a;

        assert_int_equal(of->nodes_count, 3);
        for (size_t i = 0; i < 3; i++) {
            assert_string_equal(of->nodes[i].symbol, kernel[i]);
        }
        assert_int_equal(parameter(&of->nodes[0], 0), of->tensors[0]);
        assert_int_equal(parameter(&of->nodes[1], 0), parameter(&of->nodes[0], 8));
        assert_int_equal(parameter(&of->nodes[1], 8), of->outputs[1]);
        assert_int_equal(parameter(&of->nodes[2], 8), of->scales[1]);
        assert_true(recording_holds(of, of->outputs[1], 8 * of->values[0]));
        assert_true(recording_holds(of, of->scales[1], 8 * of->values[0]));
        assert_int_equal(of->outputs[0] | of->scales[0], 0);
        assert_int_equal(of->values[0], number == 0 ? 2000 : 300);
        assert_int_equal(of->numbers_count, 1);
        memcpy(&a, of->numbers, sizeof(a));
        assert_true(a == (number == 0 ? 2.5 : 2.0));
        assert_int_equal(f->object.recording->base, ARENA_RECORDED + ARENA_RECORDED_STEP);
    }
}

static void constants_are_kept_and_are_doubles(void **state)
{
    struct recorder_fixture *f = *state;
    const struct recorded_case *of =
        recorded(f,
                 "import torch\nkept = {}\ndef reference(x, n):\n"
                 "    if n not in kept: kept[n] = torch.tensor([3.0] * n)\n"
                 "    return [(kept[n] * 2.0, kept[n])]\n",
                 0);

    const struct recorded_block *block = &of->blocks[0];
    double three;

    assert_true(block->kept && block->pieces_count > 0);
    assert_true(of->scales[1] >= block->at && of->scales[1] < block->at + block->bytes);
    const struct bytes *data = &f->object.recording->contents[block->pieces[0].content].data;
    memcpy(&three, data->data, sizeof(three));
    assert_true(three == 3);
}

// Of what must be equal the scale is not looked at.
static void an_integer_output_needs_no_scale(void **state)
{
    struct recorder_fixture *f = *state;
    char *text = xstrdup(gpu_recording_problem_text);
    char *dtype = strstr(strstr(text, "\"out\""), "f32");
    struct bytes problem = f->plan.problem;

    memcpy(dtype, "i32", 3);
    f->plan.problem = (struct bytes){.data = (unsigned char *)text, .len = strlen(text)};
    f->plan.role = COMPILE_REFERENCE;
    recorder_becomes(f, OF "    return x * a\n", VERDICT_COMPILE_ERROR,
                     "reference returns no error scale for y");
    strstr(dtype, ": 4}")[2] = '0';
    recorder_becomes(f, OF "    return x * a\n", VERDICT_NONE, "");
    f->plan.problem = problem;
    free(text);
}

// What was there before is an input, which the executor gives it, and the result is elsewhere.
static void a_tensor_that_is_updated_is_input_and_result(void **state)
{
    struct recorder_fixture *f = *state;
    const char *text = gpu_recording_problem_text, *at = strstr(text, "\"direction\": \"out\"");
    char *with = xasprintf("%.*s\"direction\": \"inout\", \"values\": {\"distribution\": "
                           "\"normal\", \"mean\": 0, \"stddev\": 1}%s",
                           (int)(at - text), text, at + strlen("\"direction\": \"out\""));
    struct problem *usual = f->problem;
    struct bytes problem = f->plan.problem;

    f->plan.problem = (struct bytes){.data = (unsigned char *)with, .len = strlen(with)};
    assert_int_equal(problem_parse(&f->problem, with, strlen(with), "p", &f->err), 0);
    const struct recorded_case *of = recorded(
        f, "import torch\ndef reference(y, a):\n    z = y * a\n    return z, z.abs()\n", 0);
    assert_int_equal(of->nodes_count, 3); // x is not asked for
    assert_int_equal(parameter(&of->nodes[0], 0), of->tensors[1]);
    assert_int_equal(parameter(&of->nodes[1], 8), of->outputs[1]);
    assert_true(recording_holds(of, of->outputs[1], 16000));
    assert_true(recording_holds(of, of->scales[1], 16000));
    problem_free(f->problem);
    f->problem = usual;
    f->plan.problem = problem;
    free(with);
}

static void its_author_is_told_in_one_sentence(void **state)
{
    struct recorder_fixture *f = *state;
    static const struct {
        const char *source;
        enum verdict verdict;
        const char *words;
    } row[] = {
        {"import torch\ndef refer(x): pass\n", VERDICT_COMPILE_ERROR,
         "reference.py defines no function reference"},
        {"import torch\ndef reference(x, y): pass\n", VERDICT_COMPILE_ERROR,
         "reference has a parameter y, which is neither an input nor a parameter of the problem"},
        {OF "    return x * a\n", VERDICT_COMPILE_ERROR,
         "reference returns no error scale for y; return the pair"},
        {OF "    x * a\n", VERDICT_COMPILE_ERROR,
         "reference returns 0 values; the problem has 1 outputs"},
        {OF "    return x, x, x\n", VERDICT_COMPILE_ERROR, "reference returns 3 values"},
        {OF "    return torch.empty(x.shape, dtype=torch.float32), x\n", VERDICT_COMPILE_ERROR,
         "what reference returns as y is torch.float32; a reference computes in torch.float64"},
        {OF "    return x[1:], x\n", VERDICT_COMPILE_ERROR,
         "what reference returns as y has the shape [1999]; the problem wants [2000]"},
        {OF "    return x, x[1:]\n", VERDICT_COMPILE_ERROR,
         "what reference returns as the error scale of y has the shape [1999]"},
        {OF "    return x, 1.0\n", VERDICT_COMPILE_ERROR,
         "what reference returns as the error scale of y is no tensor on the GPU"},
        {OF "    if x.item() > 0: pass\n    return x, x\n", VERDICT_REJECTED,
         "reference.py:3: it reads a result on the host"},
        {OF "    raise ValueError('no such size')\n", VERDICT_COMPILE_ERROR,
         "reference.py:3: ValueError: no such size"},
        {"import torch\ndef reference(:\n", VERDICT_COMPILE_ERROR, "reference.py:2: SyntaxError"},
        {OF "    torch.empty(1 << 33)\n    return x, x\n", VERDICT_CRASH,
         "it needs more memory of the GPU than it may have"},
        {"#include <x>\nextern \"C\" void p() { k<<<1, 1>>>(); }\n", VERDICT_COMPILE_ERROR,
         "a reference has no code of the host in C++"},
    };

    f->plan.role = COMPILE_REFERENCE;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        recorder_becomes(f, row[i].source, row[i].verdict, row[i].words);
    }
    f->plan.role = COMPILE_BASELINE;
    recorder_becomes(f, "import torch\ndef p(x):\n    x.item()\n", VERDICT_REJECTED,
                     "baseline.py:3: it reads a result on the host");
}

// Every case that a candidate is verified with needs it, the hidden ones as well.
static void it_is_recorded_for_all_cases_of_a_candidate(void **state)
{
    struct recorder_fixture *f = *state;
    char *text = xasprintf("%s", gpu_recording_problem_text);
    char *at = strstr(text, "\"bench\"");
    char *with = xasprintf("%.*s\"hidden\": {\"n\": {\"min\": 1, \"max\": 90}}, %s",
                           (int)(at - text), text, at);
    struct bytes problem = f->plan.problem;
    struct shape_case shape[GPU_CASES_MAX];
    struct problem *hidden = NULL;

    f->plan.problem = (struct bytes){.data = (unsigned char *)with, .len = strlen(with)};
    f->plan.role = COMPILE_REFERENCE;
    f->plan.hidden_seed = 7;
    assert_int_equal(problem_parse(&hidden, with, strlen(with), "p", &f->err), 0);
    size_t count = gpu_cases(hidden, COMPILE_CANDIDATE, 7, shape);
    assert_true(count > 2);
    recorder_becomes(f, OF "    return x * a, x\n", VERDICT_NONE, "");
    message_clear(&cuda_object_message, &f->object);
    assert_int_equal(message_read(&cuda_object_message, &f->object, f->outcome.object.data,
                                  f->outcome.object.len, &f->err),
                     0);
    for (size_t i = 0; i < count; i++) {
        assert_non_null(recording_find(f->object.recording, hidden, &shape[i]));
    }
    f->plan.problem = problem;
    problem_free(hidden);
    free(with);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_come_in_double_precision_and_results_go_so),
        cmocka_unit_test(constants_are_kept_and_are_doubles),
        cmocka_unit_test(an_integer_output_needs_no_scale),
        cmocka_unit_test(a_tensor_that_is_updated_is_input_and_result),
        cmocka_unit_test(its_author_is_told_in_one_sentence),
        cmocka_unit_test(it_is_recorded_for_all_cases_of_a_candidate),
    };

    return cmocka_run_group_tests(tests, recorder_set_up, recorder_tear_down);
}
