// Sources and candidates that mean it ill, as jobs of a daemon with the real kcast-exec on a core:
// each is contained, ends with its verdict and a sentence, tells nothing that is the host's, leaves
// no process behind, and the next job is measured as if nothing had been.
#include "common/file.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BIT(id) (1U << VERDICT_##id)
#define CHILDREN_MAX 64

// What a file of the host has in it; its name is not like that.
static const char secret[] = "int gefunden_4711;\n";

struct hostile {
    const char *what;
    const char *text;  // a source, or what stands in the entry; @PATH@: the host's file, @PID@: the
                       // daemon, @STATE@: its folder
    uint32_t verdicts; // bits of those that are right
    const char *words; // in the reason; NULL: none are looked for
};

static const struct hostile run_time[] = {
    {"fork bomb", "for (;;) fork();", BIT(REJECTED), "called clone"},
    {"disk filler",
     "int f = open(\"@STATE@/fill\", O_CREAT | O_WRONLY, 0600);"
     " for (;;) if (write(f, A, 4) < 0) break;",
     BIT(REJECTED), "called openat"},
    {"memory file", "syscall(SYS_memfd_create, \"fill\", 0);", BIT(REJECTED),
     "called memfd_create"},
    {"memory hog",
     "for (;;) { char *p = mmap(0, 16 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);"
     " if (p == MAP_FAILED) __builtin_trap(); memset(p, 1, 16 << 20); }",
     BIT(CRASH) | BIT(TIMEOUT) | BIT(REJECTED), NULL},
    {"symbolic link", "symlink(\"@STATE@\", \"/job/link\");", BIT(REJECTED), "called symlink"},
    {"hard link", "link(\"@PATH@\", \"/job/link\");", BIT(REJECTED), "called link"},
    {"/proc", "open(\"/proc/self/environ\", O_RDONLY);", BIT(REJECTED), "called openat"},
    {"network", "socket(AF_INET, SOCK_STREAM, 0);", BIT(REJECTED), "called socket"},
    {"what other jobs left", "open(\"@STATE@/ledger.db\", O_RDONLY);", BIT(REJECTED),
     "called openat"},
    {"ptrace of the daemon", "ptrace(PTRACE_ATTACH, @PID@, 0, 0);", BIT(REJECTED), "called ptrace"},
    {"memory of the daemon",
     "struct iovec v = {B, 4}; syscall(SYS_process_vm_readv, @PID@, &v, 1, &v, 1, 0);",
     BIT(REJECTED), "called process_vm_readv"},
    {"signal to the daemon", "kill(@PID@, 9);", BIT(REJECTED), "called kill"},
    {"signal to everybody", "kill(-1, 9);", BIT(REJECTED), "called kill"},
    {"namespaces", "syscall(SYS_unshare, 0x10000000);", BIT(REJECTED), "called unshare"},
    {"another root", "chroot(\"/job\");", BIT(REJECTED), "called chroot"},
};

#define ENTRY "void copy(const float *A, float *B, int64_t N) { (void)A; (void)B; (void)N; }\n"

static const struct hostile compile_time[] = {
    {"#include", "#include \"@PATH@\"\n" ENTRY, BIT(COMPILE_ERROR), "No such file"},
    {"#include /etc/shadow", "#include \"/etc/shadow\"\n" ENTRY, BIT(COMPILE_ERROR),
     "No such file"},
    {"#include /proc", "#include \"/proc/self/environ\"\n" ENTRY, BIT(COMPILE_ERROR),
     "No such file"},
    {".incbin", "__asm__(\".incbin \\\"@PATH@\\\"\");\n" ENTRY, BIT(COMPILE_ERROR), NULL},
    {".include", "__asm__(\".include \\\"@PATH@\\\"\");\n" ENTRY, BIT(COMPILE_ERROR), NULL},
    {"#embed", "static const char a[] = {\n#embed \"@PATH@\"\n};\n" ENTRY, BIT(COMPILE_ERROR),
     NULL},
    // A compiler shows the line of the file that it believes to be reading.
    {"#line", "#line 1 \"@PATH@\"\nint = 0;\n" ENTRY, BIT(COMPILE_ERROR), "error"},
    {"#pragma GCC dependency", "#pragma GCC dependency \"@PATH@\"\n" ENTRY, BIT(COMPILE_ERROR),
     "No such file"},
    {"#pragma GCC poison", "#pragma GCC poison copy\n" ENTRY, BIT(COMPILE_ERROR), "poisoned"},
    {"#include /dev/zero", "#include \"/dev/zero\"\n" ENTRY, BIT(COMPILE_ERROR), NULL},
    {"itself", "#include __FILE__\n" ENTRY, BIT(COMPILE_ERROR), "include"},
    {"macros",
     "#define A(x) x x x x x x x x x x x x x x x x\n#define B(x) A(A(A(A(x))))\n"
     "#define C(x) B(B(B(x)))\nC(int a;)\n" ENTRY,
     BIT(COMPILE_ERROR), NULL},
    {"a giant array", "char a[10LL << 30];\n" ENTRY, BIT(COMPILE_ERROR), "static data"},
    {"a giant array with contents", "char a[2LL << 30] = {1};\n" ENTRY, BIT(COMPILE_ERROR), NULL},
    {"a giant initialiser", "int a[] = {[0 ... 1 << 28] = 1};\n" ENTRY, BIT(COMPILE_ERROR), NULL},
    {"an assembler that does not end",
     "__asm__(\".macro x\\n.rept 1000000000\\nnop\\n.endr\\nx\\n.endm\\nx\\n\");\n" ENTRY,
     BIT(COMPILE_ERROR), NULL},
};

static int set_up(void **state)
{
    (void)daemon_client_set_up(state);
    ((struct daemon_client *)*state)->real_exec = true;
    ((struct daemon_client *)*state)->option[0] = "--compile-time=5s";
    return 0;
}

// Skips the test where the sandbox does not work.
static void start(struct daemon_client *client)
{
    char *path = xasprintf("%s/theirs", client->program.dir);

    if (!daemon_client_start(client)) {
        if (program_wait(&client->program) == EXIT_SANDBOX) {
            printf("skipped because there can be no sandbox\n");
            skip();
        }
        fail_msg("%s", program_log(&client->program));
    }
    struct err err = ERR_INIT;
    assert_int_equal(file_replace(path, secret, strlen(secret), false, &err), 0);
    free(path);
}

// text with this mark replaced, wherever it is; takes text.
static char *replace(char *text, const char *mark, const char *by)
{
    char *at;

    while ((at = strstr(text, mark))) {
        char *longer = xasprintf("%.*s%s%s", (int)(at - text), text, by, at + strlen(mark));

        free(text);
        text = longer;
    }
    return text;
}

static char *fill_in(const struct daemon_client *client, const char *text)
{
    char *path = xasprintf("%s/theirs", client->program.dir);
    char *pid = xasprintf("%d", (int)client->program.pid);
    char *filled = replace(replace(replace(xstrdup(text), "@PATH@", path), "@PID@", pid), "@STATE@",
                           client->state);

    free(pid);
    free(path);
    return filled;
}

static uint64_t submit(struct daemon_client *client, const char *key, const char *source,
                       double max_seconds)
{
    struct job_spec spec = daemon_client_spec(client, source);

    spec.max_seconds = max_seconds;
    struct submitted reply;
    struct err err = ERR_INIT;
    if (daemon_client_submit(client, "test", key, &spec, &reply, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return reply.job;
}

// What a candidate that does its work comes to, with something in it that makes it another one.
static void expect_served(struct daemon_client *client, const char *what)
{
    char *source = xasprintf("// after %s\nvoid copy(const float *A, float *B, int64_t N)\n"
                             "{ for (int64_t i = 0; i < N; i++) B[i] = A[i]; }\n",
                             what);
    struct job_info info;

    static unsigned number;
    char key[32];
    (void)snprintf(key, sizeof(key), "afterwards %u", ++number);
    daemon_client_wait(client, submit(client, key, source, 0.02), &info);
    if (info.state != JOB_DONE || !verdict_is_ratio(info.result->verdict)) {
        fail_msg("after %s: %s", what, info.result ? info.result->reason : info.reason);
    }
    message_clear(&job_info_message, &info);
    free(source);
}

static void tells_nothing(const struct job_info *info, const char *what)
{
    struct strbuf text = STRBUF_INIT;

    message_json(&job_info_message, info, &text);
    if (strstr(strbuf_text(&text), "gefunden") || strstr(strbuf_text(&text), "root:")) {
        fail_msg("%s: %s", what, strbuf_text(&text));
    }
    strbuf_release(&text);
}

static void expect(struct daemon_client *client, const struct hostile *hostile, const char *source)
{
    struct job_info info;

    daemon_client_wait(client, submit(client, hostile->what, source, 0.1), &info);
    if (info.state != JOB_DONE || (hostile->verdicts >> info.result->verdict & 1) == 0) {
        fail_msg("%s: %s %s: %s", hostile->what, job_state_name(info.state),
                 info.result ? verdict_name(info.result->verdict) : "",
                 info.result ? info.result->reason : info.reason);
    }
    assert_non_null(info.result->reason);
    if (hostile->words && !strstr(info.result->reason, hostile->words)) {
        fail_msg("%s: \"%s\" has no \"%s\" in it", hostile->what, info.result->reason,
                 hostile->words);
    }
    tells_nothing(&info, hostile->what);
    message_clear(&job_info_message, &info);
    pid_t pids[CHILDREN_MAX];
    assert_int_equal(program_children(client->program.pid, pids, CHILDREN_MAX), 0);
    assert_true(program_alive(client->program.pid));
}

static void log_tells_nothing(const struct daemon_client *client)
{
    char *log = program_log(&client->program);

    assert_null(strstr(log, "gefunden"));
    assert_null(strstr(log, "root:"));
    free(log);
}

static void what_a_candidate_tries_is_stopped(void **state)
{
    struct daemon_client *client = *state;

    start(client);
    for (size_t i = 0; i < ARRAY_LEN(run_time); i++) {
        char *text = fill_in(client, run_time[i].text);
        char *source = xasprintf(
            "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <sched.h>\n#include <signal.h>\n"
            "#include <string.h>\n#include <sys/mman.h>\n#include <sys/ptrace.h>\n"
            "#include <sys/socket.h>\n#include <sys/syscall.h>\n#include <sys/uio.h>\n"
            "#include <unistd.h>\nvoid copy(const float *A, float *B, int64_t N)\n{ %s\n"
            "for (int64_t i = 0; i < N; i++) B[i] = A[i]; }\n",
            text);

        expect(client, &run_time[i], source);
        expect_served(client, run_time[i].what);
        free(source);
        free(text);
    }
    log_tells_nothing(client);
    char *path = fill_in(client, "@STATE@/fill");
    assert_false(file_exists(path));
    free(path);
}

static void what_a_source_tries_is_stopped(void **state)
{
    struct daemon_client *client = *state;

    start(client);
    expect_served(client, "nothing"); // reference and baseline have been compiled
    for (size_t i = 0; i < ARRAY_LEN(compile_time); i++) {
        char *source = fill_in(client, compile_time[i].text);

        expect(client, &compile_time[i], source);
        free(source);
    }
    expect_served(client, "all of them");
    log_tells_nothing(client);
}

// The time of its compilation makes a candidate no other one: what was compiled once is not
// compiled again, and is measured like everything else.
static void the_time_of_compilation_does_no_harm(void **state)
{
    struct daemon_client *client = *state;
    const char *source = "const char *stamp(void) { return __DATE__ __TIME__ __TIMESTAMP__; }\n"
                         "void copy(const float *A, float *B, int64_t N)\n"
                         "{ for (int64_t i = 0; i < N; i++) B[i] = A[i]; }\n";

    start(client);
    struct digest object[2];
    for (size_t i = 0; i < 2; i++) {
        struct job_spec spec = daemon_client_spec(client, source);

        spec.max_seconds = 0.02;
        spec.repeat = i; // measured again
        struct submitted reply;
        assert_int_equal(
            daemon_client_submit(client, "test", i ? "again" : "once", &spec, &reply, NULL), 0);
        struct job_info info;
        daemon_client_wait(client, reply.job, &info);
        assert_int_equal(info.state, JOB_DONE);
        assert_true(verdict_is_ratio(info.result->verdict));
        object[i] = info.result->compiled->object;
        message_clear(&job_info_message, &info);
    }
    assert_true(digest_equal(&object[0], &object[1]));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, daemon_client_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_a_candidate_tries_is_stopped),
        TEST(what_a_source_tries_is_stopped),
        TEST(the_time_of_compilation_does_no_harm),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
