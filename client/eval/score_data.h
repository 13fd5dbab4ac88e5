// Internal to client/eval/score: the rows sorted once, so that every bootstrap draw is one pass
// with other weights. Only client/eval/score*.c include this.
#ifndef CLIENT_EVAL_SCORE_DATA_H
#define CLIENT_EVAL_SCORE_DATA_H

#include "client/eval/score.h"

// Measures that are weighted means over rows, the first ones of the table.
#define SCORE_MEANS (SCORE_NLL + 1)
// The calibration errors follow each other in the table.
#define SCORE_ECES (SCORE_ECE_CALL - SCORE_ECE_BIN + 1)

struct score_item {
    size_t row;
    double key;
    double value; // event or loss, 0 or 1; in `rank` the dense rank of the outcome, from 1
};

struct score_list {
    struct score_item *item; // ascending by key, then by row; owned
    size_t count;
};

struct score_data {
    size_t count;
    size_t rank_count;                    // number of different outcomes in `rank`
    double *loss[SCORE_MEANS];            // for each row; NaN when the row does not count
    size_t loss_count[SCORE_MEANS];       // rows that count
    struct score_list stated[SCORE_ECES]; // key: stated probability; value: 1 when it came true
    struct score_list call;               // key: confidence; value: 1 when the call was wrong
    struct score_list rank; // correct rows; key: mean forecast; value: rank of outcome
    // Rows with a mean; key: mean, or outcome (-infinity: wrong).
    struct score_list forecast, outcome;
    double *scratch; // working space of 2 count + 1 numbers
};

// Copies what it needs of the rows. score_data_release frees it.
void score_data_init(struct score_data *data, const struct score_row *row, size_t count);
void score_data_release(struct score_data *data);

// Computes all measures for these weights, one per row and not negative. A measure that is not
// defined is NaN.
void score_measure(double ret[static SCORE_COUNT], const struct score_data *data,
                   const double *weight, double risk);

// Fills the bands of one list.
void score_list_bands(struct score_band ret[static SCORE_BAND_COUNT], const struct score_list *list,
                      const double *weight);

// Returns the end (exclusive) of the step of equal keys that begins at `at`.
size_t score_list_step(const struct score_list *list, size_t at);

#endif
