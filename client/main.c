// The program kcast: finds the subcommand, parses its options together with the global ones, runs
// it, and prints its error.
//
// Global options may stand before or after the subcommand. The command line is therefore read
// twice: first to find the words that name the command, for which it is enough to know which global
// options take an argument, then with both option tables joined into one.
#include "client/commands.h"
#include "client/global_options.h"
#include "client/help.h"
#include "client/output.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/printable.h"
#include "common/version.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The options of the command follow the global ones in memory, at this offset.
#define GLOBAL_SIZE ((sizeof(struct session_options) + 15) / 16 * 16)

// Whether an argument is a global option that takes the next argument as its value.
static bool takes_next(const char *argument)
{
    for (const struct option_row *row = global_option_rows; row->name; row++) {
        if (row->type != OPTION_FLAG && strncmp(argument, "--", 2) == 0 &&
            strcmp(argument + 2, row->name) == 0) {
            return true;
        }
    }
    return false;
}

// The index of the next argument from `at` on that is no option; argc when there is none.
static int next_word(int argc, char **argv, int at)
{
    for (; at < argc; at++) {
        if (argv[at][0] != '-' || argv[at][1] == '\0') {
            return at;
        }
        if (strcmp(argv[at], "--") == 0) {
            return argc;
        }
        at += takes_next(argv[at]);
    }
    return argc;
}

// When no command is found, an option before the words that is none may be why: what was taken for
// the command is its value then. ERR_USAGE names it.
static int check_options_before(char **argv, int first, struct err *err)
{
    struct session_options scratch = {0};
    int rc = 0;
    for (int i = 1; i < first && rc == 0; i++) {
        char *one[] = {argv[0], argv[i], NULL};
        char **argument = NULL;
        size_t count;
        if (strncmp(argv[i], "--", 2) == 0 && !takes_next(argv[i])) {
            rc = options_parse(global_option_rows, &scratch, 2, one, &argument, &count, err);
        }
        free(argument);
    }
    options_release(global_option_rows, &scratch);
    return rc;
}

// Finds the command and removes its words from argv. *ret is NULL when there are only options.
static int find_command(int *argc, char **argv, const struct command **ret, struct err *err)
{
    *ret = NULL;
    int at[2] = {next_word(*argc, argv, 1), 0};
    if (at[0] == *argc) {
        return 0;
    }
    at[1] = next_word(*argc, argv, at[0] + 1);
    char *words[] = {argv[at[0]], at[1] < *argc ? argv[at[1]] : NULL};
    size_t used = 0;
    struct err unknown = ERR_INIT;
    int rc = commands_find(ret, &used, words, at[1] < *argc ? 2 : 1, &unknown);
    if (rc != 0) {
        rc = check_options_before(argv, at[0], err);
        return rc != 0 ? rc : err_set(err, unknown.code, "%s", unknown.text);
    }
    while (rc == 0 && used > 0) {
        used--;
        memmove(&argv[at[used]], &argv[at[used] + 1], (size_t)(*argc - at[used]) * sizeof(*argv));
        --*argc;
    }
    return rc;
}

// Joins the global rows with the command's, for one struct that holds both. malloc'd.
static struct option_row *join_rows(const struct command *command)
{
    size_t count = 0;
    while (command && command->option && command->option[count].name) {
        count++;
    }
    size_t global = 0;
    while (global_option_rows[global].name) {
        global++;
    }
    struct option_row *rows = xcalloc(global + count + 1, sizeof(*rows));
    memcpy(rows, global_option_rows, global * sizeof(*rows));
    for (size_t i = 0; i < count; i++) {
        struct option_row *row = &rows[global + i];
        *row = command->option[i];
        row->offset += GLOBAL_SIZE;
    }
    return rows;
}

static int run_command(const struct command *command, const struct session_options *options,
                       const void *own, char **argument, size_t count, struct err *err)
{
    if (count < command->argument_min) {
        err_set(err, ERR_USAGE, "`kcast %s` needs %s; `kcast %s --help` says more", command->name,
                command->arguments, command->name);
        return EXIT_USAGE;
    }
    if (count > command->argument_max) {
        err_set(err, ERR_USAGE, "`kcast %s` does not take the argument \"%.100s\"", command->name,
                argument[command->argument_max]);
        return EXIT_USAGE;
    }
    struct session *session;
    int code = session_create(&session, options, err);
    if (code != 0) {
        return err_exit(code);
    }
    int rc = command->run(session, own, argument, count, err);
    session_free(session);
    return rc;
}

// Becomes the command's program. Returns only when it cannot.
static int become(const struct command *command, int argc, char **argv, struct err *err)
{
    char *path = NULL;
    int rc = file_own_program(&path, command->program, err);
    if (rc == 0) {
        argv[argc] = NULL;
        fflush(stdout);
        signal(SIGPIPE, SIG_DFL);
        execv(path, argv);
        rc = err_set_errno(err, ERR_SYSTEM, errno, "cannot run %s", path);
    }
    free(path);
    return err_exit(rc);
}

static int run_line(int argc, char **argv, struct err *err)
{
    const struct command *command;
    int code = find_command(&argc, argv, &command, err);
    if (code != 0) {
        return err_exit(code);
    }
    if (command && command->program) {
        return become(command, argc, argv, err);
    }
    struct option_row *rows = join_rows(command);
    char *target = xcalloc(1, GLOBAL_SIZE + (command ? command->options_size : 0));
    struct session_options *options = (struct session_options *)(void *)target;
    struct err unread = ERR_INIT; // what is wrong but does not hinder --help: a configuration file,
                                  // or addresses beside --local
    code = options_defaults(rows, target, err);
    int unread_code = code == 0 ? global_options_read(options, &unread) : 0;
    char **argument = NULL;
    size_t count = 0;
    if (code == 0) {
        struct global_addresses before = global_addresses_begin(options);
        code = options_parse(rows, target, argc, argv, &argument, &count, err);
        int beside = global_addresses_end(options, &before, &unread);
        unread_code = unread_code != 0 ? unread_code : beside;
    }
    int rc = EXIT_OK;
    if (code != 0) {
        rc = err_exit(code);
    } else if (options->version) {
        printable_printf(stdout, "kcast %s\n", KCAST_VERSION);
    } else if (options->help && !command) {
        help_print();
    } else if (options->help) {
        help_print_command(command);
    } else if (!command) {
        rc = err_exit(err_set(err, ERR_USAGE, "no command is given; `kcast help` lists them"));
    } else if (unread_code != 0) {
        rc = err_exit(err_set(err, unread.code, "%s", unread.text));
    } else {
        rc = run_command(command, options, target + GLOBAL_SIZE, argument, count, err);
    }
    free(argument);
    options_release(rows, target);
    free(target);
    free(rows);
    return rc;
}

int main(int argc, char **argv)
{
    file_open_standard();
    (void)signal(SIGPIPE, SIG_IGN); // write(2) then fails with EPIPE instead
    mem_reuse_buffers();
    struct err err = ERR_INIT;
    bool json = output_wants_json(argc, argv); // run_line changes argv
    int rc = run_line(argc, argv, &err);
    return output_end("kcast", json, rc, &err);
}
