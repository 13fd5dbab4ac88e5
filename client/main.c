// The program kcast: finds the subcommand, parses its options together with the global ones, runs
// it, and prints its error.
//
// Global options may stand before or after the subcommand. The command line is therefore read
// twice: first to find the words that name the command, for which it is enough to know which global
// options take an argument, then with both option tables joined into one.
#include "client/command.h"
#include "client/session.h"
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

#define GLOBAL(field) offsetof(struct session_options, field)
// The options of the command follow the global ones in memory, at this offset.
#define GLOBAL_SIZE ((sizeof(struct session_options) + 15) / 16 * 16)

static const struct option_row global_rows[] = {
    {"pool", 0, OPTION_TEXT, GLOBAL(pool), "URLS", KCAST_DEFAULT_POOL, 0, 0, NULL,
     "daemons to measure with, separated by commas: tcp://HOST:PORT or tls://HOST:PORT, or "
     "dns://NAME:PORT for every "
     "address of a name, dns+tls://NAME:PORT for the same with certificates for NAME; all that "
     "answer share the work"},
    {"worker", 0, OPTION_TEXT, GLOBAL(worker), "URLS", KCAST_DEFAULT_WORKER, 0, 0, NULL,
     "workers to ask for forecasts, separated by commas; the first that answers is taken"},
    {"tls-ca", 0, OPTION_TEXT, GLOBAL(tls_ca), "FILE", NULL, 0, 0, NULL,
     "for tls://: certificates that the server's must be signed by; default: $KCAST_TLS_CA, or "
     "ca.pem in ~/.config/kernelcast"},
    {"tls-cert", 0, OPTION_TEXT, GLOBAL(tls_cert), "FILE", NULL, 0, 0, NULL,
     "for tls://: your certificate; default: $KCAST_TLS_CERT, or cert.pem there"},
    {"tls-key", 0, OPTION_TEXT, GLOBAL(tls_key), "FILE", NULL, 0, 0, NULL,
     "for tls://: its key, readable by you only; default: $KCAST_TLS_KEY, or key.pem there"},
    {"token-file", 0, OPTION_TEXT, GLOBAL(token_file), "FILE", NULL, 0, 0, NULL,
     "for tls://: holds your token, readable by you only; default: $KCAST_TOKEN_FILE, or token "
     "there"},
    {"no-worker", 0, OPTION_FLAG, GLOBAL(no_worker), NULL, NULL, 0, 0, NULL,
     "do without forecasts"},
    {"local", 0, OPTION_FLAG, GLOBAL(local), NULL, NULL, 0, 0, NULL,
     "start a private daemon and worker for this command, on this machine"},
    {"local-state", 0, OPTION_TEXT, GLOBAL(local_state), "DIR", NULL, 0, 0, NULL,
     "state folder for --local, kept; default: a temporary one"},
    {"sandbox", 0, OPTION_CHOICE, GLOBAL(sandbox), "on|off", NULL, 0, 0, "on|off",
     "sandbox of --local's daemon; off is for development only"},
    {"json", 0, OPTION_FLAG, GLOBAL(json), NULL, NULL, 0, 0, NULL,
     "print one JSON object per line on stdout"},
    {"quiet", 'q', OPTION_FLAG, GLOBAL(quiet), NULL, NULL, 0, 0, NULL,
     "no progress and no remarks on stderr"},
    {"help", 'h', OPTION_FLAG, GLOBAL(help), NULL, NULL, 0, 0, NULL, "print this help"},
    {"version", 'V', OPTION_FLAG, GLOBAL(version), NULL, NULL, 0, 0, NULL, "print the version"},
    {0},
};

static const struct command *const commands[] = {
    &cmd_search,     &cmd_resume,       &cmd_tune,          &cmd_wisdom,      &cmd_measure,
    &cmd_forecast,   &cmd_report,       &cmd_export,        &cmd_import,      &cmd_replay,
    &cmd_eval,       &cmd_problem_list, &cmd_problem_check, &cmd_problem_new, &cmd_status,
    &cmd_jobs,       &cmd_job,          &cmd_cancel,        &cmd_drain,       &cmd_undrain,
    &cmd_quarantine, &cmd_probe,        &cmd_top,           &cmd_token_add,   &cmd_token_revoke,
    &cmd_token_list, &cmd_tls_init,
    &cmd_budget_set, // before the command that is its first word
    &cmd_budget,
};

static void print_help(void)
{
    printable_print_lines(
        stdout,
        "usage: kcast [OPTION…] COMMAND [OPTION…] [ARGUMENT…]\n\n"
        "Finds fast implementations of a problem: measures candidates where a forecast cannot "
        "be trusted.\n\n"
        "commands:\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        printable_printf(stdout, "  %-14s %s\n", commands[i]->name, commands[i]->help);
    }
    printable_printf(stdout, "\noptions, before or after the command:\n");
    options_print(global_rows, stdout);
    printable_print_lines(
        stdout, "\n`kcast COMMAND --help` shows the options of a command.\nexit codes:\n");
#define X(id, value, text) printable_printf(stdout, "  %3d  %s\n", value, text);
    EXIT_CODES(X)
#undef X
}

static void print_command_help(const struct command *command)
{
    printable_printf(stdout, "usage: kcast %s [OPTION…]%s%s\n\n", command->name,
                     command->arguments ? " " : "", command->arguments ? command->arguments : "");
    printable_printf(stdout, "%s.\n", command->help);
    if (command->option) {
        printable_printf(stdout, "\noptions:\n");
        options_print(command->option, stdout);
    }
    printable_printf(stdout, "\nglobal options:\n");
    options_print(global_rows, stdout);
}

// Whether an argument is a global option that takes the next argument as its value.
static bool takes_next(const char *argument)
{
    for (const struct option_row *row = global_rows; row->name; row++) {
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

// The Levenshtein distance of two words. Words of more than 31 letters are far from everything.
static size_t distance(const char *a, const char *b)
{
    size_t row[32];
    size_t len_a = strlen(a), len_b = strlen(b);
    if (len_a >= ARRAY_LEN(row) || len_b >= ARRAY_LEN(row)) {
        return ARRAY_LEN(row);
    }
    for (size_t j = 0; j <= len_b; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= len_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= len_b; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            size_t insert = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < insert ? change : insert;
        }
    }
    return row[len_b];
}

// Whether commands of two words begin with this one.
static bool is_family(const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strncmp(commands[i]->name, word, len) == 0 && commands[i]->name[len] == ' ') {
            return true;
        }
    }
    return false;
}

static int unknown_command(const char *word, const char *second, struct err *err)
{
    const char *best = NULL;
    size_t best_distance = 3; // words that differ more are not suggested
    char *both = xasprintf("%s %s", word, second ? second : "");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        size_t d = distance(strchr(commands[i]->name, ' ') ? both : word, commands[i]->name);
        if (d < best_distance) {
            best = commands[i]->name;
            best_distance = d;
        }
    }
    free(both);
    bool two = is_family(word) && second;
    if (is_family(word) && !best) {
        return err_set(err, ERR_USAGE,
                       "`kcast %s` is followed by another word; `kcast --help` lists the commands",
                       word);
    }
    if (best) {
        return err_set(err, ERR_USAGE,
                       "there is no command \"%.100s%s%.100s\"; did you mean \"%s\"?", word,
                       two ? " " : "", two ? second : "", best);
    }
    return err_set(err, ERR_USAGE, "there is no command \"%.100s\"; `kcast --help` lists them",
                   word);
}

// Finds the command and removes its words from argv. *ret is NULL when there are only options.
static int find_command(int *argc, char **argv, const struct command **ret, struct err *err)
{
    *ret = NULL;
    int first = next_word(*argc, argv, 1);
    if (first == *argc) {
        return 0;
    }
    int second = next_word(*argc, argv, first + 1);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        const char *blank = strchr(commands[i]->name, ' ');
        size_t len = blank ? (size_t)(blank - commands[i]->name) : strlen(commands[i]->name);
        bool found = strlen(argv[first]) == len &&
                     strncmp(argv[first], commands[i]->name, len) == 0 &&
                     (!blank || (second < *argc && strcmp(argv[second], blank + 1) == 0));
        if (found) {
            *ret = commands[i];
            if (blank) {
                memmove(&argv[second], &argv[second + 1], (size_t)(*argc - second) * sizeof(*argv));
                --*argc;
            }
            memmove(&argv[first], &argv[first + 1], (size_t)(*argc - first) * sizeof(*argv));
            --*argc;
            return 0;
        }
    }
    return unknown_command(argv[first], second < *argc ? argv[second] : NULL, err);
}

// Joins the global rows with the command's, for one struct that holds both. malloc'd.
static struct option_row *join_rows(const struct command *command)
{
    size_t count = 0;
    while (command && command->option && command->option[count].name) {
        count++;
    }
    struct option_row *rows = xcalloc(ARRAY_LEN(global_rows) + count, sizeof(*rows));
    memcpy(rows, global_rows, sizeof(global_rows));
    for (size_t i = 0; i < count; i++) {
        struct option_row *row = &rows[ARRAY_LEN(global_rows) - 1 + i];
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
    const struct session_options *options = (const struct session_options *)(const void *)target;
    code = options_defaults(rows, target, err);
    char **argument = NULL;
    size_t count = 0;
    if (code == 0) {
        code = options_parse(rows, target, argc, argv, &argument, &count, err);
    }
    int rc = EXIT_OK;
    if (code != 0) {
        rc = err_exit(code);
    } else if (options->version) {
        printable_printf(stdout, "kcast %s\n", KCAST_VERSION);
    } else if (options->help && !command) {
        print_help();
    } else if (options->help) {
        print_command_help(command);
    } else if (!command) {
        rc = err_exit(err_set(err, ERR_USAGE, "no command is given; `kcast --help` lists them"));
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
    signal(SIGPIPE, SIG_IGN); // write(2) then fails with EPIPE instead
    struct err err = ERR_INIT;
    int rc = run_line(argc, argv, &err);
    if (err.code == ERR_NONE && (fflush(stdout) != 0 || ferror(stdout)) && errno != EPIPE) {
        rc = err_exit(err_set_errno(&err, ERR_SYSTEM, errno, "cannot write the output"));
    }
    if (err.code != ERR_NONE) {
        printable_printf(stderr, "kcast: %s\n", err.text);
    }
    return rc;
}
