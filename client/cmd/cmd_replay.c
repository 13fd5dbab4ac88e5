// kcast replay: runs the program kcast-replay. It is a separate program because it links what the
// worker links, which kcast does not need.
#include "client/command.h"
#include <stddef.h>

const struct command cmd_replay = {
    .name = "replay",
    .help = "Search spaces again, in simulated time with recorded costs, many times",
    .program = "kcast-replay",
};
