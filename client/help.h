// What kcast says of itself: the list of commands, and one command's options. Called by
// client/main.c for --help and by `kcast help`.
#ifndef CLIENT_HELP_H
#define CLIENT_HELP_H

struct command; // client/command.h

// Prints the commands, the options that all of them take, and the exit codes, to stdout.
void help_print(void);
// Prints what a command does and the options that it alone takes, to stdout.
void help_print_command(const struct command *command);

#endif
