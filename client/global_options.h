// The options that stand before or after any subcommand of kcast, and where their values come from
// besides the command line: a configuration file and the environment. Called by client/main.c and
// client/help.c.
#ifndef CLIENT_GLOBAL_OPTIONS_H
#define CLIENT_GLOBAL_OPTIONS_H

#include "client/session.h"
#include "common/options.h"

// Rows for a struct session_options; ends with a NULL name.
extern const struct option_row global_option_rows[];

// Sets *options to the defaults, then to what the section [kcast] of config in
// $XDG_CONFIG_HOME/kernelcast or ~/.config/kernelcast says, then to KCAST_POOL and KCAST_WORKER;
// the later wins, and the command line, which the caller reads afterwards, over all. The file need
// not exist. ERR_INVALID names file and line.
MUST_CHECK int global_options_read(struct session_options *options, struct err *err);

// What the addresses are without the command line. Begin takes them out of *options, so that after
// the line has been read it is seen what it names; end puts them back where it names none.
// ERR_USAGE when it names any beside --local, which would not use them.
struct global_addresses {
    char *pool, *worker; // owned between begin and end
};
struct global_addresses global_addresses_begin(struct session_options *options);
MUST_CHECK int global_addresses_end(struct session_options *options,
                                    struct global_addresses *addresses_take, struct err *err);

#endif
