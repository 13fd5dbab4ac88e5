#include "daemon/store/ledger_account.h"
#include <math.h>

// SQLite stores NaN as NULL, which is what an absent limit is in the table.
void ledger_account_bind(sqlite3_stmt *insert, const struct ledger_account *account)
{
    (void)sqlite3_bind_text(insert, 1, account->tenant, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(insert, 2, account->search, -1, SQLITE_STATIC);
    (void)sqlite3_bind_double(insert, 3, account->weight);
    (void)sqlite3_bind_double(insert, 4, account->limit_s);
    (void)sqlite3_bind_double(insert, 5, account->per_hour_s);
    (void)sqlite3_bind_double(insert, 6, account->used_s);
    (void)sqlite3_bind_double(insert, 7, account->tokens_s);
    (void)sqlite3_bind_int64(insert, 8, account->at_s);
}

static double column_limit(sqlite3_stmt *row, int column)
{
    return sqlite3_column_type(row, column) == SQLITE_NULL ? (double)NAN
                                                           : sqlite3_column_double(row, column);
}

struct ledger_account ledger_account_of_row(sqlite3_stmt *row)
{
    const char *search = (const char *)sqlite3_column_text(row, 1);

    return (struct ledger_account){
        .tenant = (const char *)sqlite3_column_text(row, 0),
        .search = search && search[0] ? search : NULL,
        .weight = sqlite3_column_double(row, 2),
        .limit_s = column_limit(row, 3),
        .per_hour_s = column_limit(row, 4),
        .used_s = sqlite3_column_double(row, 5),
        .tokens_s = sqlite3_column_double(row, 6),
        .at_s = sqlite3_column_int64(row, 7),
    };
}
