// All subcommands of kcast: the table, and finding one by the words of a command line. Called by
// client/main.c and by `kcast help`.
#ifndef CLIENT_COMMANDS_H
#define CLIENT_COMMANDS_H

#include "client/command.h"
#include <stdbool.h>
#include <stddef.h>

// The commands in the order in which they are listed; NULL behind the last one.
const struct command *commands_at(size_t i);

// The command that the first words name, and how many words its name has in *ret_words. ERR_USAGE
// names the command that may have been meant.
MUST_CHECK int commands_find(const struct command **ret, size_t *ret_words, char *const *word,
                             size_t count, struct err *err);

// Whether commands of two words begin with this one, such as "token".
bool commands_is_family(const char *word);

#endif
