// Fills any message with random values through its descriptor, for round-trip properties.
#ifndef TESTS_SUPPORT_SAMPLES_RANDOM_MESSAGE_H
#define TESTS_SUPPORT_SAMPLES_RANDOM_MESSAGE_H

#include "common/stats.h"
#include "proto/message.h"

// *value is uninitialised before and valid for message_pack afterwards; lists have at most list_max
// elements.
void random_message(const struct message *message, void *value, struct stats_rng *rng,
                    size_t list_max);

#endif
