// Shares of device time and budgets, for people and as JSON. Called by `kcast status`, `kcast jobs`
// and `kcast budget`. Asks no daemon.
#ifndef CLIENT_CMD_TABLES_SHARE_TABLE_H
#define CLIENT_CMD_TABLES_SHARE_TABLE_H

#include "proto/messages.h"
#include <jansson.h>
#include <stddef.h>

// Prints the searches of a status, a line each: their share of device time, what they got lately,
// the devices that they hold and the jobs that wait.
void share_table_print(const struct share_info *share, size_t count);

// Prints the accounts of a budget_list, as lines or as JSON. url is that of the daemon, to be
// printed; NULL when there is only one daemon.
void share_table_print_budgets(const char *url, const struct share_info *account, size_t count,
                               bool json);

#endif
