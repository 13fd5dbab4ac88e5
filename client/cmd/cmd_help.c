// kcast help: what a command does and takes; without one, the list of all.
#include "client/command.h"
#include "client/commands.h"
#include "client/help.h"
#include "client/session.h"
#include "common/file.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Lets the program that carries a command out print its help. Returns only when it cannot.
static int ask_program(const struct command *command, struct err *err)
{
    char *path = NULL;
    int rc = file_own_program(&path, command->program, err);
    if (rc == 0) {
        char name[] = "kcast", help[] = "--help";
        char *argv[] = {name, help, NULL};
        (void)signal(SIGPIPE, SIG_DFL);
        execv(path, argv);
        rc = err_set_errno(err, ERR_SYSTEM, errno, "cannot run %s", path);
    }
    free(path);
    return err_exit(rc);
}

static int run_help(struct session *session, const void *own, char **argument, size_t count,
                    struct err *err)
{
    (void)session;
    (void)own;
    if (count == 0) {
        help_print();
        return EXIT_OK;
    }
    const struct command *command;
    size_t words;
    int rc = commands_find(&command, &words, argument, count, err);
    if (rc == 0 && words < count) {
        rc = err_set(err, ERR_USAGE,
                     "`kcast help` takes one command, and \"%.100s\" is one too many",
                     argument[words]);
    }
    if (rc != 0) {
        return err_exit(rc);
    }
    if (command->program) {
        return ask_program(command, err);
    }
    help_print_command(command);
    return EXIT_OK;
}

const struct command cmd_help = {
    .name = "help",
    .arguments = "[COMMAND]",
    .help = "Show what a command does and which options it takes",
    .argument_max = 4,
    .run = run_help,
};
