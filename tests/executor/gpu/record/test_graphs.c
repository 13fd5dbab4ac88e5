// What is recorded of candidates that use several streams, or graphs of their own: which launch
// comes after which.
#include "common/strbuf.h"
#include "tests/executor/gpu/record/recorder_fixture.h"

// Begin of a candidate: go(stream, …) has the stream launch a kernel that works on y, or more.
#define PARTS                                                                                      \
    HEAD "here = torch.cuda.current_stream\nother, third = torch.cuda.Stream(), "                  \
         "torch.cuda.Stream()\n"                                                                   \
         "def go(stream, count=1, early=False):\n"                                                 \
         "    with torch.cuda.stream(stream):\n"                                                   \
         "        for _ in range(count): torch.launch('idle', early=early)\n"                      \
         "def custom_kernel(data):\n    x, y, a = data\n    s = here()\n"

// What the nodes of the first case come after, from the second on: "0;;0 1".
static void graph_is(struct recorder_fixture *f, const char *source, const char *expected)
{
    struct strbuf text = STRBUF_INIT;

    recorder_becomes(f, source, VERDICT_NONE, "");
    message_clear(&cuda_object_message, &f->object);
    assert_int_equal(message_read(&cuda_object_message, &f->object, f->outcome.object.data,
                                  f->outcome.object.len, &f->err),
                     0);
    const struct recorded_case *of = &f->object.recording->cases[0];
    assert_int_equal(of->nodes[0].after_count, 0);
    for (size_t i = 1; i < of->nodes_count; i++) {
        strbuf_adds(&text, i > 1 ? ";" : "");
        for (size_t k = 0; k < of->nodes[i].after_count; k++) {
            strbuf_addf(&text, "%s%llu", k > 0 ? " " : "",
                        (unsigned long long)of->nodes[i].after[k]);
        }
    }
    assert_string_equal(strbuf_text(&text), expected);
    strbuf_release(&text);
}

static uint64_t flags(const struct recorder_fixture *f, size_t node)
{
    return f->object.recording->cases[0].nodes[node].flags;
}

// ---- streams ----

static void streams_that_part_and_meet_are_recorded(void **state)
{
    graph_is(*state,
             PARTS "    go(s)\n    other.wait_stream(s)\n    third.wait_stream(s)\n    go(s)\n"
                   "    go(other)\n    go(third, 2)\n    s.wait_stream(other)\n"
                   "    s.wait_stream(third)\n    go(s)\n",
             "0;0;0;3;1 2 4");
    graph_is(*state,
             PARTS "    other.wait_stream(s)\n    go(s)\n    go(other)\n"
                   "    s.wait_stream(other)\n    go(s)\n",
             ";0 1");
    graph_is(*state, PARTS "    go(s, 3)\n", "0;1");
}

static void what_is_implied_is_left_out(void **state)
{
    struct recorder_fixture *f = *state;

    graph_is(f,
             PARTS "    go(s)\n    other.wait_stream(s)\n    go(other)\n"
                   "    s.wait_stream(other)\n    go(s)\n",
             "0;1");
    // One that may begin early says nothing of the end of what it comes after.
    graph_is(f,
             PARTS "    go(s)\n    began = s.record_event()\n    go(s, early=True)\n"
                   "    other.wait_event(began)\n    other.wait_stream(s)\n    go(other)\n"
                   "    s.wait_stream(other)\n",
             "0;0 1");
}

static void what_may_begin_early_says_so_where_it_waits_for_nothing_else(void **state)
{
    struct recorder_fixture *f = *state;

    graph_is(f, PARTS "    go(s)\n    go(s, 2, early=True)\n    go(s)\n", "0;1;2");
    assert_int_equal(flags(f, 0), 0);
    assert_int_equal(flags(f, 1), RECORDED_PDL);
    assert_int_equal(flags(f, 2), RECORDED_PDL);
    assert_int_equal(flags(f, 3), 0);
    graph_is(f,
             PARTS "    other.wait_stream(s)\n    go(s)\n    go(other)\n"
                   "    s.wait_stream(other)\n    go(s, early=True)\n",
             ";0 1");
    assert_int_equal(flags(f, 2), 0);
}

static void nodes_without_work_pass_on_what_they_wait_for(void **state)
{
    graph_is(*state, PARTS "    go(s)\n    torch.nothing()\n    torch.nothing()\n    go(s)\n", "0");
    graph_is(*state,
             PARTS "    other.wait_stream(s)\n    go(s)\n    go(other)\n"
                   "    s.wait_stream(other)\n    torch.nothing()\n    other.wait_stream(s)\n"
                   "    go(s)\n    go(other)\n    s.wait_stream(other)\n",
             ";0 1;0 1");
}

// The recorded stream is the default one while a candidate runs, for what orders streams as well.
static void the_default_stream_is_the_one_that_is_recorded(void **state)
{
    graph_is(*state,
             PARTS "    s = torch.cuda.Stream(0)\n    go(s)\n    other.wait_stream(s)\n"
                   "    go(other)\n    go(s)\n    s.wait_stream(other)\n    go(s)\n",
             "0;0;1 2");
}

// ---- graphs of the candidate's own ----

// Defines a graph once: what it is given is captured in it, on the stream c.
#define OWN(name, what)                                                                            \
    "    " name " = custom_kernel.__dict__.setdefault('" name "', torch.cuda.CUDAGraph())\n"       \
    "    if not " name ".handle:\n        with torch.cuda.graph(" name "):\n"                      \
    "            c = here()\n            " what "\n"
#define TWO "other.wait_stream(c); go(c); go(other); c.wait_stream(other)"

static void a_graph_that_it_launches_is_put_in_its_place(void **state)
{
    graph_is(*state, PARTS OWN("g", TWO) "    go(s)\n    g.replay()\n    go(s)\n", "0;0;1 2");
    graph_is(*state, PARTS OWN("g", "go(c, 3)") "    g.replay()\n    g.replay()\n", "0;1;2;3;4");
    graph_is(*state, PARTS OWN("g", "go(c); go(c, early=True)") "    go(s)\n    g.replay()\n",
             "0;1");
    assert_int_equal(flags(*state, 1), 0); // it is the launch before the graph
    assert_int_equal(flags(*state, 2), RECORDED_PDL);
    // Beside other work, on the default stream.
    graph_is(*state,
             PARTS OWN("g", TWO) "    third.wait_stream(s)\n    go(third)\n"
                                 "    with torch.cuda.stream(torch.cuda.Stream(0)): g.replay()\n"
                                 "    s.wait_stream(third)\n    go(s)\n",
             ";;0 1 2");
}

static void graphs_may_lie_in_graphs_and_be_empty(void **state)
{
    graph_is(*state,
             PARTS OWN("g", TWO) OWN("h", "go(c); g.replay(); g.replay()")
                 OWN("i", "h.replay(); torch.nothing()") "    i.replay()\n    go(s)\n",
             "0;0;1 2;1 2;3 4");
    graph_is(*state, PARTS OWN("g", "pass") "    go(s)\n    g.replay()\n    go(s)\n", "0");
    graph_is(*state,
             PARTS OWN("g", "torch.nothing()")
                 OWN("h", "g.replay()") "    other.wait_stream(s)\n    go(other)\n    h.replay()\n"
                                        "    s.wait_stream(other)\n    go(s)\n",
             "0");
}

// What a graph that is kept works in is nobody else's, though the graph's maker has given it back.
static void memory_of_a_captured_graph_is_not_taken_again(void **state)
{
    static const char *const captured[] = {"with torch.cuda.graph(torch.cuda.CUDAGraph())",
                                           "if True"};
    struct recorder_fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(captured); i++) {
        char *source =
            xasprintf(HEAD "at = set()\n"
                           "def p(x, y, n, a):\n    if n not in at:\n        at.add(n)\n"
                           "        %s:\n            t = torch.empty(n)\n"
                           "            t.copy_(x)\n        was = t.data_ptr()\n"
                           "        del t\n        if torch.empty(n).data_ptr() == was:\n"
                           "            raise ValueError('taken again')\n"
                           "    torch.launch('fk_scale', x, y, n, a)\n",
                      captured[i]);

        recorder_becomes(f, source, i == 0 ? VERDICT_NONE : VERDICT_COMPILE_ERROR,
                         i == 0 ? "" : "taken again");
        free(source);
    }
}

// ---- what is refused ----

static void streams_that_are_not_joined_are_refused(void **state)
{
    recorder_becomes(*state, PARTS "    other.wait_stream(s)\n    go(s)\n    go(other)\n",
                     VERDICT_REJECTED, "it returns while work on another stream goes on");
    // What is on a stream that waits for nothing is not seen, and nothing seen may wait for it.
    recorder_becomes(*state, PARTS "    go(other)\n    s.wait_stream(other)\n    go(s)\n",
                     VERDICT_REJECTED, "something else that cannot be recorded");
    recorder_becomes(*state, PARTS "    go(other)\n", VERDICT_REJECTED, "it launches nothing");
}

static void a_host_function_in_a_graph_is_refused(void **state)
{
    recorder_becomes(*state, PARTS OWN("g", "torch.host_function()") "    go(s)\n    g.replay()\n",
                     VERDICT_REJECTED, "it calls a function of the host while it runs");
}

// Many branches that the last launch waits for.
#define BRANCHES(count)                                                                            \
    PARTS "    if not custom_kernel.__dict__: custom_kernel.all = [torch.cuda.Stream() for _ in "  \
          "range(" count ")]\n    for each in custom_kernel.all:\n"                                \
          "        each.wait_stream(s)\n        go(each)\n"                                        \
          "    for each in custom_kernel.all: s.wait_stream(each)\n    go(s)\n"

static void graphs_have_a_limit(void **state)
{
    struct recorder_fixture *f = *state;

    recorder_becomes(f, BRANCHES("64"), VERDICT_NONE, "");
    recorder_becomes(f, BRANCHES("65"), VERDICT_REJECTED,
                     "a launch waits for 65 others at once; it may wait for 64");
    recorder_becomes(f, PARTS OWN("g", "go(c, 1025)") "    for _ in range(4): g.replay()\n",
                     VERDICT_REJECTED, "it launches more than 4096 kernels, copies and fills");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_that_part_and_meet_are_recorded),
        cmocka_unit_test(what_is_implied_is_left_out),
        cmocka_unit_test(what_may_begin_early_says_so_where_it_waits_for_nothing_else),
        cmocka_unit_test(nodes_without_work_pass_on_what_they_wait_for),
        cmocka_unit_test(the_default_stream_is_the_one_that_is_recorded),
        cmocka_unit_test(a_graph_that_it_launches_is_put_in_its_place),
        cmocka_unit_test(graphs_may_lie_in_graphs_and_be_empty),
        cmocka_unit_test(memory_of_a_captured_graph_is_not_taken_again),
        cmocka_unit_test(streams_that_are_not_joined_are_refused),
        cmocka_unit_test(a_host_function_in_a_graph_is_refused),
        cmocka_unit_test(graphs_have_a_limit),
    };

    return cmocka_run_group_tests(tests, recorder_set_up, recorder_tear_down);
}
