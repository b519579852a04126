/* linmdp_memory.h: all that lsvi-gp keeps. It does not grow. */
#ifndef LINMDP_MEMORY_H
#define LINMDP_MEMORY_H

#include <stdint.h>

#include "linmdp_features.h"

#define LINMDP_TRIANGLE (LINMDP_P * (LINMDP_P + 1) / 2)

typedef struct {
    linmdp_number x[LINMDP_K];
} linmdp_point;

/* Equal transitions, or near ones. */
typedef struct {
    linmdp_real times, reward, squared; /* how many, and means of the reward and of its square */
    uint32_t others;                    /* of them from other states, that were merged with it */
    uint16_t from, to;                  /* points */
    uint16_t place;                     /* while rows are sorted: where it was */
    linmdp_index_a action;
    uint8_t over; /* nothing followed */
} linmdp_row;

/* Transitions as they were seen. */
typedef struct {
    linmdp_point point[LINMDP_HELD];
    uint16_t rank[LINMDP_HELD]; /* while they are numbered anew: its number */
    linmdp_row row[LINMDP_ROWS];
    linmdp_wide radius;                           /* of merging; 0 before the first */
    linmdp_wide centre[LINMDP_K], unit[LINMDP_K]; /* mean of each coordinate, and one over its range */
    uint32_t seen, again;                         /* steps, and those that began where an earlier one did */
    uint16_t count, held, begun;                  /* rows, points, and points that a row began with */
} linmdp_experience;

/* What some steps can pay, as far as has been seen. */
typedef struct {
    linmdp_wide most[LINMDP_L + 1], least[LINMDP_L + 1]; /* sums of so many rewards in a row */
    linmdp_wide reward[2], episode[2];                   /* least and most of one, and of an episode */
    uint32_t shortest, longest;                          /* episodes */
} linmdp_returns;

/* What actions share, what each has of its own, what each state has of its own, and the noise: variances. */
typedef struct {
    linmdp_wide shared, own, exact, noise;
} linmdp_shares;

/* From sums over cells to weights; symmetric matrices, the lower triangle row by row. */
typedef struct {
    linmdp_wide inverse[LINMDP_A][LINMDP_TRIANGLE];
    linmdp_wide common[LINMDP_TRIANGLE];
} linmdp_fit;

/* What acting needs of a planning. */
typedef struct {
    linmdp_wide pivot[LINMDP_P][LINMDP_K], inverse[LINMDP_TRIANGLE]; /* features of x: inverse k(pivots, x) */
    linmdp_wide centre[LINMDP_K], unit[LINMDP_K];
    linmdp_fit fit;
    linmdp_shares shares;
    linmdp_wide scale[LINMDP_KEPT], top[LINMDP_KEPT], cap[LINMDP_KEPT], low[LINMDP_KEPT];
    linmdp_wide reach, again; /* what may be hoped for, and the share of steps that began where an earlier one did */
    linmdp_real w[LINMDP_KEPT][LINMDP_A][LINMDP_P];
    linmdp_real own[LINMDP_KEPT][LINMDP_CELLS];
    linmdp_real deviation[LINMDP_HELD][LINMDP_A], hope[LINMDP_HELD][LINMDP_A];
    linmdp_point point[LINMDP_HELD];
    uint16_t begins[LINMDP_HELD + 1]; /* the first cell of each point */
    linmdp_index_a action[LINMDP_CELLS];
    uint16_t points, cells, features, stride, steps, levels;
} linmdp_plan;

/* What planning needs besides, and where it is. */
typedef struct {
    linmdp_real F[LINMDP_HELD][LINMDP_P], left[LINMDP_HELD]; /* features of the points, and what they leave over */
    linmdp_wide V[LINMDP_HELD];
    linmdp_real Q[LINMDP_HELD][LINMDP_A];
    linmdp_wide y[LINMDP_CELLS];
    linmdp_real times[LINMDP_CELLS], reward[LINMDP_CELLS], omega[LINMDP_CELLS], error[LINMDP_CELLS];
    linmdp_real stands[LINMDP_CELLS]; /* states that it stands for */
    uint16_t state[LINMDP_CELLS];
    linmdp_real share[LINMDP_ROWS];
    uint16_t cell[LINMDP_ROWS], following[LINMDP_ROWS], order[LINMDP_ROWS];
    linmdp_wide top[LINMDP_L + 1], low[LINMDP_L + 1];
    linmdp_wide z[LINMDP_A][LINMDP_P], w[LINMDP_A][LINMDP_P], w_0[LINMDP_P];
    linmdp_wide within, power, visited;                               /* of the targets */
    linmdp_wide over, over_trace, squares, trace, noise, noise_trace, free; /* of the evidence */
    uint16_t pivot[LINMDP_P];
    uint16_t at, rows, round; /* of the stage */
    uint8_t stage, part, wide;
} linmdp_job;

typedef struct {
    linmdp_experience experience;
    linmdp_returns returns;
    linmdp_wide rewards[LINMDP_H];  /* of this episode */
    linmdp_wide sums[LINMDP_H + 1]; /* of some of them in a row, at its end */
    linmdp_plan plan[2];            /* the one that acts, and the one that is made */
    linmdp_job job;
    linmdp_shares shares;
    linmdp_wide usual, value, scout;       /* a usual return; of the start; the episode before which no scout is sent */
    uint32_t steps, due, episodes, usuals; /* usuals: episodes that the usual return is of */
    uint32_t seed, draws, tie_key;         /* randomness is a hash of these: see linmdp_draws.h */
    uint16_t next;                         /* the step to be observed next; LINMDP_H between episodes */
    uint8_t open, over;                    /* an episode has begun, and its last step was the end for good */
    uint8_t acting, scouting;              /* the plan that acts; it is that of a scout */
} linmdp_learner;

#define LINMDP_NONE UINT16_MAX

#endif
