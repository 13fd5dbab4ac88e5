// Compiler logs and the sentences made of them.
#include "executor/compile_result.h"
#include "executor/cpu/diagnose.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct diagnose_limits limits = {.max_memory = (uint64_t)512 << 20,
                                              .max_output = (uint64_t)32 << 20,
                                              .max_seconds = 2.5,
                                              .processes = 64};

// gcc has ended with exit status 1.
static void expect(const char *log, const char *sentence)
{
    char *got = diagnose(log, "candidate.c", &limits, 1 << 8);
    assert_string_equal(got, sentence);
    free(got);
}

static void logs_become_sentences(void **state)
{
    (void)state;
    expect("", "the compiler ended with exit status 1 and says nothing");
    expect("candidate.c:3:5: warning: odd\ncandidate.c:4:1: error: bad\n  4 | x\n",
           "candidate.c:4:1: error: bad");
    expect("/usr/bin/ld: ./ccAAAAAA.o: in function `kcast_entry':\nglue.c:(.text+0x5): undefined "
           "reference to `sgemm'\n"
           "collect2: error: ld returned 1 exit status\n",
           "candidate.c does not define `sgemm`");
    expect("/usr/bin/ld: ./ccAAAAAA.o: in function `sgemm':\ncandidate.c:(.text+0x5): undefined "
           "reference to `kernel'\n"
           "collect2: error: ld returned 1 exit status\n",
           "candidate.c uses `kernel`, which is defined nowhere");
    expect("/usr/bin/ld: ./ccAbCd12.o:candidate.c:(.text+0): multiple definition of `x'; "
           "./ccAbCd13.o:glue.c:(.text+0)\n",
           "/usr/bin/ld: candidate.c:(.text+0): multiple definition of `x'; glue.c:(.text+0)");
    expect("cc1: out of memory allocating 65536 bytes after a total of 1 bytes\n",
           "compiling it takes more than the 512 MiB of memory allowed");
    expect("gcc: fatal error: File size limit exceeded signal terminated program as\ncompilation "
           "terminated.\n",
           "compiling it writes more than the 32 MiB allowed");
    expect(
        "{standard input}: Assembler messages:\n{standard input}:5: Error: no such instruction\n",
        "{standard input}:5: Error: no such instruction");
    expect("something else\nmore\n",
           "the compiler ended with exit status 1; it says: something else");
    expect("undefined reference to ",
           "the compiler ended with exit status 1; it says: undefined reference to ");
    expect("gcc: fatal error: CPU time limit exceeded signal terminated program cc1\n",
           "compiling it takes longer than the 2.5 seconds of processor time allowed");
    expect("gcc: fatal error: cannot execute 'as': vfork: Resource temporarily unavailable\n",
           "compiling it takes more than the 64 processes allowed");
    expect("collect2: fatal error: ld terminated with signal 9 [Killed]\n",
           "compiling it takes more than the 512 MiB of memory allowed");
    expect("collect2: fatal error: ld terminated with signal 11 [Segmentation fault]\n",
           "the compiler ended with exit status 1; it says: collect2: fatal error: ld terminated "
           "with signal 11 [Segmentation fault]");
}

// A source can make the assembler print lines, blank ones too, before it ends without a word.
static void blank_lines_are_no_sentence(void **state)
{
    static const struct {
        const char *log;
        int status;
        const char *sentence;
    } row[] = {
        {"\n \t\n\r\n", 1 << 8, "the compiler ended with exit status 1 and says nothing"},
        {"\n\n hm\n", 4 << 8, "the compiler ended with exit status 4; it says:  hm"},
        {"", SIGSEGV, "the compiler was ended by SIGSEGV and says nothing"},
        {"", 0, "the compiler reports success and leaves no object"},
        {"hm\n", 0, "the compiler reports success and leaves no object; it says: hm"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        char *got = diagnose(row[i].log, "candidate.c", &limits, row[i].status);

        assert_string_equal(got, row[i].sentence);
        free(got);
    }
}

static void text_becomes_valid(void **state)
{
    (void)state;
    char text[] = "a\x01\x7f\xff\xc3\xa4\xe2\x82\xed\xa0\x80\n\t\xc0\x80z";
    compile_result_clean(text, sizeof(text) - 1);
    assert_string_equal(text, "a???\xc3\xa4?????\n\t??z");
}

static void long_lines_are_cut_between_characters(void **state)
{
    (void)state;
    char log[2000];
    memset(log, 'a', sizeof(log));
    for (size_t i = 0; i + 1 < sizeof(log) - 1; i += 2) {
        memcpy(log + i, "\xc3\xa4", 2);
    }
    memcpy(log, "b: error: ", 10);
    log[sizeof(log) - 1] = '\0';
    char *sentence = diagnose(log, "candidate.c", &limits, 1 << 8);
    assert_true(strlen(sentence) < 500);
    free(sentence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logs_become_sentences),
        cmocka_unit_test(blank_lines_are_no_sentence),
        cmocka_unit_test(text_becomes_valid),
        cmocka_unit_test(long_lines_are_cut_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
