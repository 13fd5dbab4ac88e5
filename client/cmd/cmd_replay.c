// kcast replay: a program of its own, because it holds what a worker holds, and kcast is to stay thin.
#include "client/command.h"
#include <stddef.h>

const struct command cmd_replay = {
    .name = "replay",
    .help = "Search spaces again, in simulated time with recorded costs, many times",
    .program = "kcast-replay",
};
