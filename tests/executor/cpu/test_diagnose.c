// Compiler logs and the sentences made of them.
#include "executor/compile_result.h"
#include "executor/cpu/diagnose.h"
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct diagnose_limits limits = {.max_memory = (uint64_t)512 << 20,
                                              .max_output = (uint64_t)32 << 20};

static void expect(const char *log, const char *sentence)
{
    char *got = diagnose(log, "candidate.c", &limits);
    assert_string_equal(got, sentence);
    free(got);
}

static void logs_become_sentences(void **state)
{
    (void)state;
    expect("", "the compiler failed without a word");
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
    expect("something else\nmore\n", "something else");
    expect("undefined reference to ", "undefined reference to ");
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
    char *sentence = diagnose(log, "candidate.c", &limits);
    assert_true(strlen(sentence) < 500);
    free(sentence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logs_become_sentences),
        cmocka_unit_test(text_becomes_valid),
        cmocka_unit_test(long_lines_are_cut_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
