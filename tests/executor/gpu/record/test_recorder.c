// What becomes of candidates in Python: what is recorded of them, and what they are refused for.
#include "executor/gpu/arena.h"
#include "executor/gpu/cases.h"
#include "executor/gpu/input_set.h"
#include "executor/gpu/record/recorder.h"
#include "executor/gpu/record/turn.h"
#include "tests/executor/gpu/record/recorder_fixture.h"
#include <sys/file.h>

// Returns the first case of a recording: of the benchmark, n = 2000 and a = 2.5.
static const struct recorded_case *recorded(struct recorder_fixture *f, const char *source)
{
    recorder_becomes(f, source, VERDICT_NONE, "");
    message_clear(&cuda_object_message, &f->object);
    if (message_read(&cuda_object_message, &f->object, f->outcome.object.data,
                     f->outcome.object.len, &f->err) != 0) {
        fail_msg("%s", f->err.text);
    }
    assert_non_null(f->object.recording);
    assert_int_equal(f->object.recording->cases_count, 2);
    return &f->object.recording->cases[0];
}

static uint64_t parameter(const struct recorded_node *node, size_t at)
{
    uint64_t value = 0;

    assert_true(at + 8 <= node->parameters.len);
    memcpy(&value, node->parameters.data + at, 8);
    return value;
}

// ---- what is recorded ----

// Tensors lie where the executor will have them, and parameters are what the kernel is given.
static void a_launch_is_recorded_as_it_is(void **state)
{
    struct recorder_fixture *f = *state;
    const struct recorded_case *of = recorded(
        f, SCALE "    torch.launch('fk_scale', x, y, x.numel(), a, grid=(8, 2, 3), block=(32, 4, "
                 "2), smem=4096)\n");
    const uint64_t shape[RECORDED_SHAPE] = {8, 2, 3, 32, 4, 2};
    struct tensor_sizes sizes;
    cu_pointer at[PROBLEM_TENSOR_MAX];
    int32_t n;
    float a;

    assert_int_equal(tensor_sizes_of(f->problem, &f->problem->bench[0], &sizes, &f->err), 0);
    gpu_tensor_addresses(GPU_RECORDING_L2, sizes.bytes, 2, at);
    assert_int_equal(of->tensors[0], at[0]);
    assert_int_equal(of->tensors[1], at[1]);
    assert_int_equal(of->values[0], 2000);
    assert_int_equal(f->object.recording->base, ARENA_RECORDED + ARENA_RECORDED_STEP);
    assert_int_equal(of->nodes_count, 1);
    const struct recorded_node *node = &of->nodes[0];
    assert_int_equal(node->kind, RECORDED_KERNEL);
    assert_string_equal(node->symbol, "fk_scale");
    assert_memory_equal(node->shape, shape, sizeof(shape));
    assert_int_equal(node->smem, 4096);
    assert_int_equal(node->parameters.len, 24);
    assert_int_equal(parameter(node, 0), at[0]);
    assert_int_equal(parameter(node, 8), at[1]);
    memcpy(&n, node->parameters.data + 16, 4);
    memcpy(&a, node->parameters.data + 20, 4);
    assert_int_equal(n, 2000);
    assert_true(a == 2.5f);
    assert_int_equal(of->blocks_count, 0);
    assert_int_equal(f->object.recording->images_count, 1);
}

static void every_form_of_a_candidate_is_called(void **state)
{
    static const char *const source[] = {
        SCALE LAUNCH,
        SCALE LAUNCH "    return y\n",
        HEAD "class ModelNew(torch.nn.Module):\n    def __init__(self, k):\n        self.k = k\n"
             "    def forward(self, x, a):\n        y = torch.empty(x.shape)\n"
             "        torch.launch(self.k, x, y, x.numel(), a)\n        return y\n"
             "def get_init_inputs():\n    return ['fk_scale']\n",
        HEAD "def p(a, y, n, x):\n    torch.launch('fk_scale', x, y, n, a)\n",
        HEAD "def p(**known):\n    torch.launch('fk_scale', known['x'], known['y'], known['n'], "
             "known['a'])\n",
    };
    struct recorder_fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(source); i++) {
        const struct recorded_case *of = recorded(f, source[i]);

        assert_int_equal(of->nodes_count, 1);
        assert_int_equal(parameter(&of->nodes[0], 0), of->tensors[0]);
        uint64_t y = of->outputs_count > 0 && of->outputs[1] != 0 ? of->outputs[1] : of->tensors[1];
        assert_int_equal(parameter(&of->nodes[0], 8), y);
        assert_int_equal(f->object.recording->cases[1].values[0], 300);
    }
}

// The context is made in its turn, and when the candidate runs that is over and nothing is left of
// it.
static void no_candidate_holds_the_turn_of_making_a_context(void **state)
{
    struct recorder_fixture *f = *state;
    int turn = turn_open(NULL, &f->err);

    assert_true(turn >= 0);
    recorded(f, HEAD "def p(x, y, n, a):\n"
                     "    for fd in range(64):\n"
                     "        try:\n"
                     "            name = os.readlink(f'/proc/self/fd/{fd}')\n"
                     "        except OSError:\n"
                     "            continue\n"
                     "        assert 'kcast-context' not in name\n"
                     "    torch.launch('fk_scale', x, y, n, a)\n");
    assert_int_equal(flock(turn, LOCK_EX | LOCK_NB), 0);
    recorded(f, SCALE LAUNCH); // one who keeps it for ever keeps nobody from recording for ever
    close(turn);
    recorded(f, SCALE LAUNCH);
}

// What Triton makes once is made by the process that the candidate's is forked from, and what
// depends on the candidate by its own.
static void what_triton_needs_is_made_once(void **state)
{
    struct recorder_fixture *f = *state;

    recorded(f, HEAD "import os\nimport triton\nfrom triton.backends.nvidia import driver\n"
                     "from triton.runtime.cache import triton_key\n"
                     "def p(x, y, n, a):\n    own = os.getpid()\n"
                     "    assert triton_key() == os.getppid()\n"
                     "    assert driver.CudaUtils().module.made_by == os.getppid()\n"
                     "    assert driver.compile_module_from_src('launches').made_by == own\n"
                     "    torch.launch('fk_scale', x, y, n, a)\n");
}

// What a candidate mentions is imported by the process that the candidate's is forked from, which
// must not start CUDA for it, because then no child could.
static void modules_are_imported_once_without_starting_cuda(void **state)
{
    struct recorder_fixture *f = *state;

    recorded(f, HEAD "import os\nfrom torch.utils import cpp_extension  # for load_inline\n"
                     "assert cpp_extension.imported_by == os.getppid()\n"
                     "assert torch.cuda.started_by is None\n"
                     "assert torch.cuda.is_available() is True\n"
                     "def p(x, y, n, a):\n"
                     "    torch.launch('fk_scale', x, y, n, a)\n");
}

// What makes it one with a launcher for the executor, as a comment for the compiler of C.
#define LAUNCHER                                                                                   \
    "// extern \"C\" k<<<1, 1>>>();\n#include <stddef.h>\ntypedef unsigned long long at;\n"        \
    "int cuMemcpyDtoDAsync_v2(at, at, size_t, void *);\n"

// Its function has all tensors, all parameters in their order, and the stream that is recorded.
static void a_launcher_is_compiled_and_called(void **state)
{
    struct recorder_fixture *f = *state;
    const struct recorded_case *of =
        recorded(f, LAUNCHER "void p(at x, at y, long n, double a, void *stream)\n"
                             "{ cuMemcpyDtoDAsync_v2(y, x, a == 2.5 ? 4 * n : 4, stream); }\n");

    assert_int_equal(of->nodes_count, 1);
    assert_int_equal(of->nodes[0].kind, RECORDED_COPY);
    assert_int_equal(of->nodes[0].from, of->tensors[0]);
    assert_int_equal(of->nodes[0].to, of->tensors[1]);
    assert_int_equal(of->nodes[0].bytes, 8000);
    assert_int_equal(f->object.recording->images_count, 0);
    assert_int_equal(f->object.recording->cases[1].nodes[0].bytes, 4); // of a = 2
    recorder_becomes(f, LAUNCHER "#error not this one\n", VERDICT_COMPILE_ERROR,
                     "error: #error not this one");
    recorder_becomes(f, LAUNCHER "void q(at x) { (void)x; }\n", VERDICT_COMPILE_ERROR,
                     "it defines no function p or kcast_run that is extern \"C\"");
    recorder_becomes(f, LAUNCHER "void kcast_run(at x) { (void)x; }\n", VERDICT_REJECTED,
                     "it launches nothing");
}

// A result that was made while it was recorded lies in a block that holds nothing before.
static void what_it_returns_lies_in_a_block(void **state)
{
    struct recorder_fixture *f = *state;
    const struct recorded_case *of =
        recorded(f, SCALE "    z = torch.empty(x.numel())\n"
                          "    torch.launch('fk_scale', x, z, x.numel(), a)\n"
                          "    w = torch.empty(x.numel() + 4)\n    w[1:x.numel() + 1].copy_(z)\n"
                          "    return w[1:x.numel() + 1]\n");

    assert_int_equal(of->outputs_count, 2);
    assert_int_equal(of->outputs[0], 0);
    assert_true(recording_holds(of, of->outputs[1], 8000));
    assert_int_equal(of->outputs[1] % 512, 4); // where that part of the tensor is
    assert_int_equal(of->blocks_count, 1);
    assert_false(of->blocks[0].kept);
    assert_int_equal(of->nodes_count, 2);
    assert_int_equal(of->nodes[1].kind, RECORDED_COPY);
    assert_int_equal(of->nodes[1].to, of->outputs[1]);
    assert_int_equal(of->nodes[1].bytes, 8000);
    assert_int_equal(of->nodes[1].after_count, 1);
    assert_int_equal(of->nodes[1].after[0], 0);
}

// A part of a tensor of two-byte elements may begin between words, where it cannot be compared.
static void a_result_between_words_is_copied_to_one(void **state)
{
    struct recorder_fixture *f = *state;
    struct bytes whole = f->plan.problem;
    char *halves = xstrdup(gpu_recording_problem_text), *at;

    while ((at = strstr(halves, "f32"))) {
        memcpy(at, "f16", 3);
    }
    f->plan.problem.data = (unsigned char *)halves;
    for (int begin = 1; begin <= 2; begin++) {
        char *source = xasprintf(HEAD "def custom_kernel(data):\n    x, y, a = data\n"
                                      "    n, b = x.numel(), %d\n"
                                      "    z = torch.empty(n + b, dtype=torch.float16)\n"
                                      "    z[b:].copy_(x)\n    return z[b:]\n",
                                 begin);
        const struct recorded_case *of = recorded(f, source);

        assert_int_equal(of->nodes_count, begin == 1 ? 2 : 1);
        assert_int_equal(of->outputs[1] % 512, begin == 1 ? 0 : 4);
        free(source);
    }
    f->plan.problem = whole;
    free(halves);
}

// Weights are kept; memory that was there before and that nothing depends on is not.
static void what_matters_of_the_memory_from_before_is_kept(void **state)
{
    struct recorder_fixture *f = *state;
    const struct recorded_case *of =
        recorded(f, HEAD "class ModelNew(torch.nn.Module):\n    def __init__(self):\n"
                         "        self.other = torch.tensor([7.0] * 2000)\n"
                         "        self.w = torch.tensor([float(i) for i in range(2000)])\n"
                         "    def forward(self, x, a):\n        y = torch.zeros(x.shape)\n"
                         "        torch.launch('fk_scale', self.w, y, x.numel(), a)\n"
                         "        return y\n");
    const struct recorded_block *kept = &of->blocks[0];

    assert_int_equal(of->blocks_count, 2);
    assert_true(kept->kept);
    assert_false(of->blocks[1].kept);
    assert_int_equal(of->nodes[0].kind, RECORDED_FILL);
    assert_int_equal(of->nodes[0].bytes, 8000);
    assert_int_equal(kept->pieces_count, 1);
    uint64_t w = parameter(&of->nodes[1], 0), at = kept->at + kept->pieces[0].at;
    const struct bytes *data = &f->object.recording->contents[kept->pieces[0].content].data;
    assert_int_equal(at, w);
    assert_int_equal(data->len, 8192); // with what it was rounded up to
    assert_true(((const float *)(const void *)data->data)[1999] == 1999.0f);
}

// ---- what is refused ----

static void what_cannot_be_recorded_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *source;
        enum verdict verdict;
        const char *words;
    } row[] = {
        {"import torch\ndef custom_kernel(data)\n    pass\n", VERDICT_COMPILE_ERROR,
         "candidate.py:2: SyntaxError: "},
        {"import torch\nimport nothing_of_this_name\n", VERDICT_COMPILE_ERROR,
         "candidate.py:2: ModuleNotFoundError: No module named 'nothing_of_this_name'"},
        {"import torch\nx = 1\n", VERDICT_COMPILE_ERROR,
         "candidate.py defines neither custom_kernel(data) nor a class ModelNew nor a function p"},
        {SCALE "    raise ValueError('no\\nsuch size')\n", VERDICT_COMPILE_ERROR,
         "candidate.py:4: ValueError: no such size"},
        {SCALE LAUNCH "    sys.exit('enough')\n", VERDICT_COMPILE_ERROR,
         "candidate.py:5: SystemExit: enough"},
        {SCALE "    if torch.cuda.streams: y.item()\n" LAUNCH, VERDICT_REJECTED,
         "candidate.py:4: it reads a result on the host"},
        {SCALE LAUNCH "    torch.cuda.synchronize()\n", VERDICT_REJECTED,
         "candidate.py:5: it reads a result on the host, waits for the GPU"},
        {SCALE "    y.write([0.0] * y.numel())\n", VERDICT_REJECTED,
         "it copies from memory of the host while it runs"},
        {SCALE LAUNCH "    torch.host_function()\n", VERDICT_REJECTED,
         "it calls a function of the host while it runs"},
        {SCALE "    pass\n", VERDICT_REJECTED, "it launches nothing"},
        {SCALE LAUNCH "    return y, y\n", VERDICT_COMPILE_ERROR,
         "it returns 2 values; the problem has 1 outputs"},
        {SCALE LAUNCH "    return 1.0\n", VERDICT_COMPILE_ERROR,
         "what it returns for y is no tensor on the GPU"},
        {SCALE LAUNCH "    return torch.empty(7)\n", VERDICT_COMPILE_ERROR,
         "what it returns for y is torch.float32 of [7]; the problem wants torch.float32 of"},
        {HEAD "def p(x, z):\n    pass\n", VERDICT_COMPILE_ERROR,
         "p has a parameter z, which is neither a tensor nor a parameter of the problem"},
        {SCALE "    torch.empty(17 << 28)\n" LAUNCH, VERDICT_CRASH,
         "it needs more memory of the GPU than it may have"},
        {SCALE "    torch.launch('fk_fault')\n", VERDICT_CRASH, "CUDA error: 700"},
        {SCALE "    torch.launch('fk_scale', x, y, 1 << 30, a)\n", VERDICT_CRASH,
         "CUDA error: 700"},
        {SCALE "    torch.launch('none', grid=(0, 1, 1))\n", VERDICT_REJECTED,
         "none has extents that no launch has"},
    };

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        recorder_becomes(*state, row[i].source, row[i].verdict, row[i].words);
    }
}

static void the_whole_traceback_comes_with_a_refusal(void **state)
{
    const struct compiled *compiled =
        recorder_record(*state, HEAD "def inner(x):\n    return x.nothing\n"
                                     "def custom_kernel(data):\n    inner(data[0])\n");

    assert_non_null(compiled->log);
    assert_non_null(strstr(compiled->log, "candidate.py\", line 5, in custom_kernel"));
    assert_non_null(strstr(compiled->log, "candidate.py\", line 3, in inner"));
    assert_non_null(strstr(compiled->log, "AttributeError"));
}

// ---- what ends, waits, or writes what it should not ----

static void whatever_ends_the_process_is_its_crash(void **state)
{
    struct recorder_fixture *f = *state;

    recorder_becomes(f, SCALE "    os._exit(3)\n", VERDICT_CRASH,
                     "its process ended with exit status 3 while it was recorded");
    recorder_becomes(f, SCALE "    os.kill(os.getpid(), signal.SIGKILL)\n", VERDICT_CRASH,
                     "its process was ended by SIGKILL while it was recorded");
    recorder_becomes(f, HEAD "import ctypes\nctypes.string_at(8)\n", VERDICT_CRASH,
                     "its process was ended by SIGSEGV while it was recorded");
    recorded(f, SCALE LAUNCH);
}

static void what_does_not_end_is_ended(void **state)
{
    struct recorder_fixture *f = *state;

    f->plan.max_seconds = 0.1;
    recorder_becomes(f, HEAD "signal.pause()\n", VERDICT_REJECTED,
                     "it did not end within 0.3 seconds");
    f->plan.max_seconds = RECORDER_LIMIT;
    recorded(f, SCALE LAUNCH);
}

// Code that writes to every pipe that its process has, of which one is the recorder's.
#define TO_PIPES(what)                                                                             \
    HEAD "for fd in range(256):\n    try:\n"                                                       \
         "        if stat.S_ISFIFO(os.fstat(fd).st_mode): " what "\n"                              \
         "    except OSError: pass\n"

static void what_it_writes_to_the_recorders_pipe_is_not_believed(void **state)
{
    struct recorder_fixture *f = *state;

    recorder_becomes(f, TO_PIPES("os.write(fd, b'\\xff' * 100)") "os._exit(0)\n", VERDICT_REJECTED,
                     "what was recorded makes no sense");
    recorder_becomes(f, TO_PIPES("os.write(fd, b'\\x80')") SCALE LAUNCH, VERDICT_REJECTED,
                     "what was recorded makes no sense");
    recorder_becomes(f,
                     TO_PIPES("[os.write(fd, bytes(1 << 20)) for _ in range(49)]") "os._exit(0)\n",
                     VERDICT_COMPILE_ERROR, "its object is larger than the 48 MiB allowed");
    recorder_becomes(
        f, // a message that says that the recorder itself has failed
        TO_PIPES("os.write(fd, b'\\xdf\\0\\0\\0\\1\\4\\xdb\\0\\0\\0\\6no GPU')") "os._exit(0)\n",
        VERDICT_REJECTED, "it cannot be recorded: no GPU");
    recorder_becomes(f, TO_PIPES("os.close(fd)") SCALE LAUNCH, VERDICT_CRASH,
                     "while it was recorded");
    recorded(f, SCALE LAUNCH);
}

// Its output, and that of programs that it starts, is not part of the answer.
static void what_it_prints_does_no_harm(void **state)
{
    recorder_becomes(
        *state,
        HEAD "raise RuntimeError({os.readlink(f'/proc/self/fd/{fd}') for fd in range(3)})\n",
        VERDICT_COMPILE_ERROR, "RuntimeError: {'/dev/null'}");
    recorded(*state, HEAD "print('hello')\nprint('hello', file=sys.stderr)\n"
                          "os.system('echo hello; echo hello >&2')\n" SCALE LAUNCH);
}

// The recorder's own words, where test_record.c has those of an interpreter that plays it.
static void without_pytorch_there_is_one_sentence(void **state)
{
    struct recorder_fixture *f = *state;
    struct recorder bare = RECORDER_INIT;
    char python[sizeof(f->python)];
    struct err err = ERR_INIT;

    snprintf(python, sizeof(python), "%s/bare/bin/python3", f->folder);
    assert_int_equal(recorder_start(&bare, python, false, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "/bare/bin/python3 does not record: ModuleNotFoundError: "
                                     "No module named 'torch'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launch_is_recorded_as_it_is),
        cmocka_unit_test(every_form_of_a_candidate_is_called),
        cmocka_unit_test(no_candidate_holds_the_turn_of_making_a_context),
        cmocka_unit_test(what_triton_needs_is_made_once),
        cmocka_unit_test(modules_are_imported_once_without_starting_cuda),
        cmocka_unit_test(a_launcher_is_compiled_and_called),
        cmocka_unit_test(what_it_returns_lies_in_a_block),
        cmocka_unit_test(a_result_between_words_is_copied_to_one),
        cmocka_unit_test(what_matters_of_the_memory_from_before_is_kept),
        cmocka_unit_test(what_cannot_be_recorded_is_refused_with_its_line),
        cmocka_unit_test(the_whole_traceback_comes_with_a_refusal),
        cmocka_unit_test(whatever_ends_the_process_is_its_crash),
        cmocka_unit_test(what_does_not_end_is_ended),
        cmocka_unit_test(what_it_writes_to_the_recorders_pipe_is_not_believed),
        cmocka_unit_test(what_it_prints_does_no_harm),
        cmocka_unit_test(without_pytorch_there_is_one_sentence),
    };

    return cmocka_run_group_tests(tests, recorder_set_up, recorder_tear_down);
}
