// What a fake executor does badly, when the candidate says so (fake_exec.c lists the words).
#include "common/file.h"
#include "tests/support/exec_stub.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void exec_bad_compile(const char *text)
{
    if (exec_has(text, "compile-crash")) {
        abort();
    }
    if (exec_has(text, "compile-garbage")) {
        puts("this is no report");
        exit(0);
    }
}

// A descendant in a session of its own that holds nothing of ours open; its pid is in the file.
static void make_orphan(const char *path)
{
    int written[2]; // closed when it is
    char byte;

    if (pipe(written) != 0) {
        _exit(1);
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)setsid();
        (void)signal(SIGTERM, SIG_IGN);
        close(0);
        close(1);
        close(2);
        FILE *file = fopen(path, "w");
        if (file) {
            fprintf(file, "%d\n", (int)getpid());
            (void)fclose(file);
        }
        close(written[0]);
        close(written[1]);
        exec_sleep_forever();
    }
    close(written[1]);
    (void)!read(written[0], &byte, 1);
    close(written[0]);
}

static void flood(void)
{
    static char block[1 << 16];

    memset(block, 'x', sizeof(block));
    for (int i = 0; i < 16384; i++) {
        if (write(STDOUT_FILENO, block, sizeof(block)) < 0) {
            _exit(1);
        }
    }
    _exit(0);
}

// As without a sanitizer that would rather print something and abort.
static void crash(void)
{
    (void)signal(SIGSEGV, SIG_DFL);
    (void)raise(SIGSEGV);
}

void exec_bad_run(const char *text)
{
    char *argument;

    if ((argument = exec_word(text, "crash-once"))) {
        if (!file_exists(argument)) {
            close(open(argument, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
            crash();
        }
        free(argument);
    }
    if ((argument = exec_word(text, "takes"))) {
        (void)usleep((useconds_t)(1000 * strtoul(argument, NULL, 10)));
        free(argument);
    }
    if ((argument = exec_word(text, "orphans"))) {
        make_orphan(argument);
        free(argument);
    }
    if ((argument = exec_word(text, "run-exit"))) {
        fprintf(stderr, "first line\nthe reason is on the last line\n");
        _exit((int)strtol(argument, NULL, 10));
    }
    if (exec_has(text, "run-crash")) {
        crash();
    }
    if (exec_has(text, "run-deaf")) {
        (void)signal(SIGTERM, SIG_IGN);
        exec_note("deaf", text);
        exec_sleep_forever();
    }
    if (exec_has(text, "run-hang")) {
        exec_sleep_forever();
    }
    if (exec_has(text, "run-garbage")) {
        puts("\xdd\xff\xff\xff\xff garbage");
        fflush(stdout);
        if (exec_stub.framed) {
            exec_sleep_forever();
        }
        exit(0);
    }
    if (exec_has(text, "run-flood")) {
        flood();
    }
    if (exec_has(text, "run-empty")) {
        _exit(0);
    }
    if (exec_has(text, "run-kill")) {
        (void)raise(SIGKILL);
    }
    if (exec_has(text, "run-close")) {
        close(STDOUT_FILENO);
        exec_sleep_forever();
    }
}
