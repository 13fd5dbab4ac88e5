// Candidates with load_inline: what is compiled against the headers that stand in for PyTorch's
// (executor/recorder/inline), by the host's compiler; what those functions take, give and throw;
// and what is left to PyTorch's own load_inline. The candidates are in tests/data/inline, and hold
// themselves what they expect of their functions.
#include "common/file.h"
#include "executor/gpu/record/recorder.h"
#include "tests/executor/gpu/record/recorder_fixture.h"

#define COMPILING 300.0 // seconds of processor time, for compilers of C++ on a slow machine

static int set_up(void **state)
{
    int rc = recorder_set_up(state);

    ((struct recorder_fixture *)*state)->plan.max_seconds = COMPILING;
    return rc;
}

static const struct compiled *record_file(struct recorder_fixture *f, const char *name,
                                          enum verdict verdict, const char *words)
{
    char *path = xasprintf("tests/data/inline/%s", name);
    struct bytes text = {.data = NULL};
    struct err err = ERR_INIT;

    if (file_read(&text, path, 65536, &err) != 0) {
        fail_msg("%s", err.text);
    }
    char *source = xstrndup((const char *)text.data, text.len);
    recorder_becomes(f, source, verdict, words);
    free(source);
    bytes_clear(&text);
    free(path);
    return f->outcome.compiled;
}

static void log_has(const struct compiled *compiled, const char *words)
{
    if (!compiled->log || !strstr(compiled->log, words)) {
        fail_msg("the log does not say \"%s\": %s", words, compiled->log ? compiled->log : "");
    }
}

static void functions_take_and_give_what_they_declare(void **state)
{
    struct recorder_fixture *f = *state;
    const struct compiled *compiled = record_file(f, "calls.py", VERDICT_NONE, "");

    log_has(compiled, "load_inline of calls: compiled without PyTorch's headers, ");
    if (message_read(&cuda_object_message, &f->object, f->outcome.object.data,
                     f->outcome.object.len, &f->err) != 0) {
        fail_msg("%s", f->err.text);
    }
    const struct recorded_case *of = &f->object.recording->cases[0];
    assert_int_equal(of->nodes_count, 1);
    assert_int_equal(of->nodes[0].kind, RECORDED_COPY);
    assert_int_equal(of->nodes[0].from, of->tensors[0]);
    assert_int_equal(of->nodes[0].to, of->outputs[1]);
    assert_int_equal(of->nodes[0].bytes, 8000);
    message_clear(&cuda_object_message, &f->object);
}

static void failures_have_their_exceptions_and_tensors_their_lives(void **state)
{
    struct recorder_fixture *f = *state;
    char *halves = xasprintf("%s/env/include/cuda_bf16.h", f->folder);
    bool known = access(halves, R_OK) == 0;

    free(halves);
    if (!known) {
        print_message("skipped because there is no CUDA toolkit, whose halves it computes with\n");
        skip();
    }
    log_has(record_file(f, "errors.py", VERDICT_NONE, ""),
            "load_inline of errors: compiled without PyTorch's headers, ");
}

static void sources_may_name_their_functions_themselves(void **state)
{
    const struct compiled *compiled = record_file(*state, "bound.py", VERDICT_NONE, "");

    log_has(compiled, "load_inline of in_cpp: compiled without PyTorch's headers, ");
    log_has(compiled, "load_inline of in_cuda: compiled without PyTorch's headers, ");
}

static void files_are_compiled_each_by_itself(void **state)
{
    const struct compiled *compiled = record_file(*state, "files.py", VERDICT_NONE, "");

    log_has(compiled, "load of files0: compiled without PyTorch's headers, ");
    log_has(compiled, "load of files1: compiled without PyTorch's headers, ");
    log_has(compiled, "load of files2: compiled without PyTorch's headers, ");
    log_has(compiled, "load of alone: PyTorch's own headers are needed, because without them: the "
                      "sources bind their functions themselves");
    log_has(compiled, "load of nowhere: PyTorch's own headers are needed, because without them: "
                      "[Errno 2] No such file or directory");
    log_has(compiled, "text.txt is neither C++ nor CUDA");
    log_has(compiled, "more arguments without a name");
}

static void what_the_headers_lack_is_left_to_pytorch(void **state)
{
    const struct compiled *compiled = record_file(*state, "others.py", VERDICT_NONE, "");

    log_has(compiled, "load_inline of unknown: PyTorch's own headers are needed, because without "
                      "them: ");
    log_has(compiled, "a_function_of_pytorch");
    log_has(compiled, "load_inline of unknown: compiled with PyTorch's own headers, ");
    log_has(compiled, "load_inline of pybind: PyTorch's own headers are needed");
    log_has(compiled, "load_inline of both: PyTorch's own headers are needed, because without "
                      "them: the sources bind their functions themselves");
    log_has(compiled, "load_inline of named: PyTorch's own headers are needed");
    log_has(compiled, "load_inline of pasted: PyTorch's own headers are needed");
    log_has(compiled, "load_inline of header: PyTorch's own headers are needed");
    log_has(compiled, "load_inline of flag: PyTorch's own headers are needed");
    log_has(compiled, "load_inline of endless: PyTorch's own headers are needed, because without "
                      "them: main.cpp:");
    log_has(compiled, "load_inline of library: PyTorch's own headers are needed, because without "
                      "them: the sources bind their functions themselves");
    log_has(compiled, "load_inline of undefined: PyTorch's own headers are needed, because without "
                      "them: ");
    log_has(compiled, "it is given build_directory");
    log_has(compiled, "load_inline of generation: PyTorch's own headers are needed, because "
                      "without them: TORCH_CUDA_ARCH_LIST names Hopper");
    log_has(compiled, "load_inline of none: PyTorch's own headers are needed, because without "
                      "them: nvcc fatal : error: Unsupported gpu architecture");
    log_has(compiled, "load_inline of one: compiled without PyTorch's headers, ");
    log_has(compiled, "load_inline of same: compiled without PyTorch's headers, ");
}

static void what_no_headers_can_compile_fails_at_once(void **state)
{
    const struct compiled *compiled = record_file(*state, "impossible.py", VERDICT_NONE, "");

    log_has(compiled, "load_inline of twice: does not compile, with PyTorch's own headers or "
                      "without them: functions= has them bound");
    log_has(compiled, "load_inline of another: does not compile");
}

static void what_does_not_compile_has_both_errors(void **state)
{
    struct recorder_fixture *f = *state;
    const struct compiled *compiled =
        record_file(f, "broken.py", VERDICT_COMPILE_ERROR,
                    "candidate.py:4: RuntimeError: Error building extension 'broken': "
                    "main.cpp:7:1: error: it cannot");

    log_has(compiled, "load_inline of broken: PyTorch's own headers are needed, because without "
                      "them: main.cpp:");
    log_has(compiled, "does not compile with PyTorch's own headers\nError building extension "
                      "'broken': [1/2] c++ -c main.cpp");
}

// The architecture is the request's, as for a candidate with a launcher.
static void device_code_is_compiled_for_the_target(void **state)
{
    struct recorder_fixture *f = *state;

    f->plan.target = "sm_0";
    const struct compiled *compiled =
        record_file(f, "calls.py", VERDICT_COMPILE_ERROR, "candidate.py:");
    log_has(compiled, "because without them: nvcc fatal : error: Unsupported gpu architecture");
    f->plan.target = "sm_90";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_take_and_give_what_they_declare),
        cmocka_unit_test(failures_have_their_exceptions_and_tensors_their_lives),
        cmocka_unit_test(sources_may_name_their_functions_themselves),
        cmocka_unit_test(files_are_compiled_each_by_itself),
        cmocka_unit_test(what_the_headers_lack_is_left_to_pytorch),
        cmocka_unit_test(what_no_headers_can_compile_fails_at_once),
        cmocka_unit_test(what_does_not_compile_has_both_errors),
        cmocka_unit_test(device_code_is_compiled_for_the_target),
    };

    return cmocka_run_group_tests(tests, set_up, recorder_tear_down);
}
