#include "client/help.h"

#include "client/commands.h"
#include "client/global_options.h"
#include "common/strbuf.h"
#include "common/wrap.h"
#include <stdio.h>

#define NAME_COLUMNS 18

void help_print(void)
{
    size_t width = wrap_width(stdout);
    wrap_print(
        stdout,
        "usage: kcast [OPTION…] COMMAND [OPTION…] [ARGUMENT…]\n\n"
        "Finds fast implementations of a problem: measures candidates where a forecast cannot "
        "be trusted.\n\n"
        "commands:\n");
    for (size_t i = 0; commands_at(i); i++) {
        char left[64];
        (void)snprintf(left, sizeof(left), "  %s", commands_at(i)->name);
        wrap_print_columns(stdout, left, NAME_COLUMNS, commands_at(i)->help, width);
    }
    wrap_print(stdout, "\noptions of every command, before or after it:\n");
    options_print(global_option_rows, stdout);
    wrap_print(stdout, "\nfiles:\n");
    wrap_print_columns(
        stdout, "  ~/.config/kernelcast/config", 32,
        "a section [kcast] with lines like \"pool = tls://gpu1:7410\": pool, worker, "
        "tls-ca, tls-cert, tls-key, token-file, local-state, sandbox, quiet; KCAST_POOL "
        "and KCAST_WORKER win over it, and options over both",
        width);
    options_print_exit_codes(stdout);
    wrap_print(stdout, "\n`kcast help COMMAND` shows the options of a command.\n");
}

void help_print_command(const struct command *command)
{
    struct strbuf text = STRBUF_INIT;
    strbuf_addf(&text, "usage: kcast %s [OPTION…]%s%s\n\n%s.\n", command->name,
                command->arguments ? " " : "", command->arguments ? command->arguments : "",
                command->help);
    wrap_print(stdout, strbuf_text(&text));
    strbuf_release(&text);
    if (command->option) {
        wrap_print(stdout, "\noptions:\n");
        options_print(command->option, stdout);
    }
    wrap_print(stdout, "\n`kcast help` shows the options that every command takes.\n");
}
