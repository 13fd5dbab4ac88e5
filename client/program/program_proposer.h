// Asks programs for candidates: one run of the program for each request, several at a time. A run
// that goes wrong (the program dies, hangs, floods, prints what is no candidate) is told in one
// sentence; the candidates that came before in whole lines count.
#ifndef CLIENT_PROGRAM_PROGRAM_PROPOSER_H
#define CLIENT_PROGRAM_PROGRAM_PROPOSER_H

#include "client/forecast/proposer.h"

#define PROGRAM_SECONDS_DEFAULT 600
#define PROGRAM_OUTPUT_MAX ((size_t)16 << 20) // bytes of one run's stdout

// Makes a proposer that runs this command with the bounds of *started. read and its owner, and say,
// which tells the user a sentence, and its owner outlive it. The caller's, to be freed with
// proposer_free.
struct proposer *program_proposer_create(struct session *session, const struct run_started *started,
                                         const char *command, search_text_reader *read, void *owner,
                                         void (*say)(void *owner, const char *sentence),
                                         void *say_owner);

#endif
