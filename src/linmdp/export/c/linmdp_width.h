/* linmdp_width.h: beta from the noise of the data, and the multiple of it that earns most.
 *
 *     beta = kappa max(Z sigma, floor), at most ceiling
 *
 * sigma^2 is the mean square of the one-step errors of greedy weights, planned without a bonus from the same data. kappa is
 * one of a few multiples, played by a bandit: before each planning the one with the largest upper confidence bound on its
 * recent returns is taken.
 */
#ifndef LINMDP_WIDTH_H
#define LINMDP_WIDTH_H

#include <stdint.h>

#include "linmdp_algebra.h"
#include "linmdp_features.h"

#define LINMDP_ARMS 3

typedef struct {
    linmdp_wide w[LINMDP_LEVELS][LINMDP_D];                                  /* greedy weights */
    linmdp_wide weight[LINMDP_ARMS], sum[LINMDP_ARMS], squares[LINMDP_ARMS]; /* of the faded returns of each multiple */
    linmdp_wide mean_square;                                                 /* of the errors: sigma^2 */
    linmdp_wide error_squares, errors, earned;                               /* in this episode */
    linmdp_wide reward, predicted; /* of the last step; they wait for the next state */
    uint32_t episodes, due;        /* episodes ended, and when greedy weights are to be planned again */
    uint8_t arm, waiting;
} linmdp_width;

void linmdp_width_init(linmdp_width *width);

/* beta for the planning that comes */
linmdp_wide linmdp_width_choose(linmdp_width *width);

/* 1 if the multiple of the moment can not be the best: planning with another one should not wait */
int linmdp_width_beaten(const linmdp_width *width);

/* A step: what was done and got in a state. */
void linmdp_width_see(linmdp_width *width, unsigned h, const linmdp_seen *seen, unsigned action, linmdp_wide reward);

/* The episode has ended. over: nothing follows its last step, as opposed to something unknown. */
void linmdp_width_end(linmdp_width *width, int over);

/* New greedy weights are in place. */
void linmdp_width_renewed(linmdp_width *width);

#endif
